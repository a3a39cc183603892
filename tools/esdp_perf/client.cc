#include <optional>
#include <string>

#include "tools/esdp_perf/channel.h"
#include "tools/esdp_perf/session.h"
#include "tools/esdp_perf/side.h"

namespace esdp_perf {
namespace {

// Where a file that is fetched goes: beside the one that was sent, if it was.
std::string TargetPath(const Options& options) {
  return options.tasks.size() > 1 ? options.file + ".fetched" : options.file;
}

class Client {
 public:
  Client(const Options& options, const Task& task, Channel& channel)
      : options_(options), task_(task), channel_(channel) {}

  absl::StatusOr<Result> Run() {
    auto offer = Propose();
    if (!offer.ok()) return offer.status();
    auto side = Side::Open(ThisProcess(), task_, {.client = true, .quiet = options_.quiet},
                           std::move(file_));
    if (!side.ok()) return side.status();
    if (absl::Status status = Connect(**side, *offer); !status.ok()) return status;

    if (auto ready = channel_.Receive(); !ready.ok()) return ready.status();
    if (absl::Status status = channel_.Say("go"); !status.ok()) return status;
    if (absl::Status status = (*side)->Run(); !status.ok()) return status;
    if (absl::Status status = channel_.Say("done"); !status.ok()) return status;

    Result result{task_, (*side)->Seen(), {}, (*side)->round_trips()};
    auto seen = channel_.Receive();
    if (!seen.ok()) return seen.status();
    result.server = OutcomeFromFields(*seen);
    if (result.client.sha256 != result.server.sha256) {
      return absl::DataLossError(task_.file + ": SHA-256 is " + result.client.sha256 +
                                 " here and " + result.server.sha256 + " at the far end");
    }
    return result;
  }

 private:
  // Sends the task; the answer tells the data port and, of a file that comes, its length.
  absl::StatusOr<Fields> Propose() {
    const bool sends_file = task_.mode == Task::Mode::kFile && task_.send;
    if (sends_file) {
      auto file = MappedFile::Open(options_.file);
      if (!file.ok()) return file.status();
      task_.bytes = file->bytes().size();
      file_.emplace(*std::move(file));
    }
    if (absl::Status status = channel_.Send(ToFields(task_)); !status.ok()) return status;
    auto offer = channel_.Receive();
    if (!offer.ok()) return offer.status();
    if (task_.mode == Task::Mode::kFile && !task_.send) {
      task_.bytes = offer->Number("bytes");
      auto file = MappedFile::Create(TargetPath(options_), task_.bytes);
      if (!file.ok()) return file.status();
      file_.emplace(*std::move(file));
    }
    return offer;
  }

  absl::Status Connect(Side& side, const Fields& offer) {
    const auto port = static_cast<uint16_t>(offer.Number("port"));
    const esdp::Address address = channel_.socket().peer().WithPort(port);
    for (uint64_t i = 0; i < task_.connections; ++i) {
      auto socket = side.station().Connect(address, SocketOptionsFor(task_));
      if (!socket.ok()) return socket.status();
      if (absl::Status status = side.activity().Add(*std::move(socket)); !status.ok())
        return status;
    }
    return absl::OkStatus();
  }

  const Options& options_;
  Task task_;
  Channel& channel_;
  std::optional<MappedFile> file_;
};

}  // namespace

absl::StatusOr<Result> RunTask(const Options& options, const Task& task) {
  auto address = esdp::Address::Parse(options.address + ":" + std::to_string(options.port));
  if (!address.ok()) return address.status();
  auto station = Station::Open({.fabric = task.fabric});
  if (!station.ok()) return station.status();
  auto socket = (*station)->Connect(*address);
  if (!socket.ok()) return socket.status();
  auto channel = Channel::Over(**station, *std::move(socket));
  if (!channel.ok()) return channel.status();

  auto result = Client(options, task, **channel).Run();
  if (!result.ok()) (*channel)->SendError(result.status());
  (*channel)->Close().IgnoreError();  // all has been said
  return result;
}

}  // namespace esdp_perf
