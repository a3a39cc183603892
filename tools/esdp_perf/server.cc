#include <cstdio>
#include <optional>
#include <string>

#include "tools/esdp_perf/channel.h"
#include "tools/esdp_perf/session.h"
#include "tools/esdp_perf/side.h"

namespace esdp_perf {
namespace {

// One client's run, as its task says.
absl::StatusOr<std::optional<MappedFile>> OpenFile(const Options& options, Task& task) {
  std::optional<MappedFile> none;
  if (task.mode != Task::Mode::kFile) return none;
  if (options.folder.empty()) {
    return absl::PermissionDeniedError("this server has no files; start it with --folder");
  }
  const std::string path = options.folder + "/" + task.file;
  auto file = task.send ? MappedFile::Create(path, task.bytes) : MappedFile::Open(path);
  if (!file.ok()) return file.status();
  task.bytes = file->bytes().size();
  return std::optional<MappedFile>(*std::move(file));
}

absl::Status AcceptConnections(const Task& task, Channel& channel, Side& side) {
  auto listener =
      side.station().Listen(channel.socket().local().WithPort(0), SocketOptionsFor(task));
  if (!listener.ok()) return listener.status();
  Fields offer;
  offer.Set("port", uint64_t{listener->local().port()});
  offer.Set("bytes", task.bytes);
  if (absl::Status status = channel.Send(offer); !status.ok()) return status;
  for (uint64_t i = 0; i < task.connections; ++i) {
    auto socket = side.station().Accept(*listener, absl::Seconds(30));
    if (!socket.ok()) return socket.status();
    if (absl::Status status = side.activity().Add(*std::move(socket)); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status RunSession(const Options& options, Channel& channel) {
  auto fields = channel.Receive();
  if (!fields.ok()) return fields.status();
  auto task = TaskFromFields(*fields);
  if (!task.ok()) return task.status();
  task->fabric = options.tasks[0].fabric;  // each side has its own: verbs and qpip may meet
  auto file = OpenFile(options, *task);
  if (!file.ok()) return file.status();
  auto side = Side::Open(ThisProcess(), *task, {}, *std::move(file));
  if (!side.ok()) return side.status();
  if (absl::Status status = AcceptConnections(*task, channel, **side); !status.ok()) return status;

  if (absl::Status status = channel.Say("ready"); !status.ok()) return status;
  if (auto go = channel.Receive(); !go.ok()) return go.status();
  if (absl::Status status = (*side)->Run(); !status.ok()) return status;
  // What the client still waits for must not be cut off.
  if (auto done = channel.Receive(); !done.ok()) return done.status();
  if (absl::Status status = channel.Send(ToFields((*side)->Seen())); !status.ok()) return status;
  side->reset();  // the client lets go of its side too
  const auto end = channel.Receive();
  return absl::IsAborted(end.status()) ? end.status() : absl::OkStatus();
}

void ServeOne(const Options& options, Station& station, esdp::Socket socket) {
  const std::string peer = socket.peer().ToString();
  auto channel = Channel::Over(station, std::move(socket));
  const absl::Status status = channel.ok() ? RunSession(options, **channel) : channel.status();
  if (!status.ok()) {
    std::fprintf(stderr, "%s: %s\n", peer.c_str(), status.ToString().c_str());
    if (channel.ok()) (*channel)->SendError(status);
  }
  if (channel.ok()) (*channel)->Close().IgnoreError();
}

}  // namespace

absl::Status Serve(const Options& options) {
  auto address = esdp::Address::Parse(options.address + ":" + std::to_string(options.port));
  if (!address.ok()) return address.status();
  auto station = Station::Open({.fabric = options.tasks[0].fabric});
  if (!station.ok()) return station.status();
  auto listener = (*station)->Listen(*address);
  if (!listener.ok()) return listener.status();
  std::printf("listening on %s, port %u\n", listener->local().ToString().c_str(),
              unsigned{listener->local().port()});
  std::fflush(stdout);
  for (uint64_t served = 0; options.sessions == 0 || served < options.sessions; ++served) {
    auto socket = (*station)->Accept(*listener);
    if (!socket.ok()) return socket.status();
    ServeOne(options, **station, *std::move(socket));
  }
  return absl::OkStatus();
}

}  // namespace esdp_perf
