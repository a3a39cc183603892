#include "tests/sockets/two_hosts.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/types/span.h"
#include "impl/base/random.h"

namespace esdp::sockets {
namespace {

Event Missing(absl::StatusCode code) {
  Event event;
  event.code = code;
  return event;
}

// How far the simulated time goes at once when nothing is to be dequeued.
constexpr absl::Duration kStep = absl::Milliseconds(1);

template <typename T>
T ValueOf(absl::StatusOr<T> result) {
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : T();
}

}  // namespace

std::string NameOf(Setting setting) {
  switch (setting) {
    case Setting::kQpipThread:
      return "QpipThread";
    case Setting::kQpipManual:
      return "QpipManual";
    case Setting::kSim:
      return "Sim";
  }
  return "";
}

ContextOptions OptionsOf(Setting setting) {
  ContextOptions options;
  options.fabric = setting == Setting::kSim ? "sim:1" : "qpip";
  options.progress = setting == Setting::kQpipThread ? Progress::kThread : Progress::kManual;
  return options;
}

// --- Host ----------------------------------------------------------------------------------------

Host::Host(const ContextOptions& options, uint32_t depth)
    : memory(kMemoryBytes),
      context(ValueOf(Context::Open(options))),
      queue(ValueOf(context.CreateQueue({.depth = depth}))),
      region(ValueOf(context.Register(absl::MakeSpan(memory)))) {}

Host::~Host() = default;

std::string_view Host::Text(uint64_t offset, uint64_t length) const {
  return std::string_view(reinterpret_cast<const char*>(memory.data()) + offset, length);
}

void Host::Write(uint64_t offset, std::string_view text) {
  std::memcpy(memory.data() + offset, text.data(), text.size());
}

void Host::Fill(uint64_t seed) {
  Random random(seed);
  for (std::byte& byte : memory) byte = static_cast<std::byte>(random.Next());
}

size_t Host::Collect() {
  std::array<Event, 16> events;
  const absl::StatusOr<size_t> count = queue.TryDequeue(absl::MakeSpan(events));
  EXPECT_TRUE(count.ok()) << count.status();
  if (!count.ok()) return 0;
  for (size_t i = 0; i < *count; ++i) {
    const Event& event = events[i];
    EXPECT_FALSE(ended_.contains(event.op))
        << "an event after the terminal one: " << ToString(event.type);
    EXPECT_FALSE(closed_.contains(event.socket))
        << "an event after kClose: " << ToString(event.type);
    if (event.terminal()) ended_[event.op] = seen.size();
    if (event.type == EventType::kClose) closed_.insert(event.socket);
    seen.push_back(event);
  }
  return *count;
}

const Event* Host::Terminal(OpId op) const {
  const auto found = ended_.find(op);
  return found == ended_.end() ? nullptr : &seen[found->second];
}

const Event* Host::First(EventType type) const {
  const auto found = std::ranges::find(seen, type, &Event::type);
  return found == seen.end() ? nullptr : &*found;
}

// --- TwoHosts ------------------------------------------------------------------------------------

TwoHosts::TwoHosts(Setting setting, uint32_t depth) : setting_(setting) {
  ContextOptions options = OptionsOf(setting);
  client_ = std::make_unique<Host>(options, depth);
  if (setting == Setting::kSim) options.world_of = &client_->context;
  server_ = std::make_unique<Host>(options, depth);
}

TwoHosts::~TwoHosts() = default;

void TwoHosts::DestroyServer() {
  b_ = Socket();
  listener_ = Socket();
  server_.reset();
}

void TwoHosts::DestroyClient() {
  a_ = Socket();
  client_.reset();
}

bool TwoHosts::RunUntil(const std::function<bool()>& done, absl::Duration most) {
  Context& clock = client_ != nullptr ? client_->context : server_->context;
  const absl::Time end = clock.Now() + most;
  for (;;) {
    size_t moved = 0;
    if (client_ != nullptr) moved += client_->Collect();
    if (server_ != nullptr) moved += server_->Collect();
    if (done()) return true;
    if (clock.Now() >= end) return false;
    if (moved > 0) continue;
    if (setting_ == Setting::kSim) {
      EXPECT_TRUE(clock.Progress(kStep).ok());
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
}

void TwoHosts::RunFor(absl::Duration time) {
  (void)RunUntil([] { return false; }, time);
}

Event TwoHosts::Await(Host& host, OpId op) {
  const bool came = RunUntil([&] { return host.Terminal(op) != nullptr; });
  EXPECT_TRUE(came) << "no terminal event";
  return came ? *host.Terminal(op) : Missing(absl::StatusCode::kUnknown);
}

Event TwoHosts::Await(Host& host, const absl::StatusOr<OpId>& posted) {
  EXPECT_TRUE(posted.ok()) << posted.status();
  return posted.ok() ? Await(host, *posted) : Missing(posted.status().code());
}

void TwoHosts::Listen(const SocketOptions& options, int backlog) {
  listener_ = ValueOf(server().context.CreateSocket(Family::kIpv4, SocketType::kStream, options));
  const absl::Status bound = listener_.Bind(Address::Loopback(Family::kIpv4, 0));
  EXPECT_TRUE(bound.ok()) << bound;
  const absl::Status listening = listener_.Listen(backlog);
  EXPECT_TRUE(listening.ok()) << listening;
}

bool TwoHosts::Connect(const SocketOptions& client_options, const SocketOptions& server_options) {
  if (!listener_.valid()) Listen(server_options);
  a_ = ValueOf(client().context.CreateSocket(Family::kIpv4, SocketType::kStream, client_options));
  const absl::StatusOr<OpId> accepting = listener_.Accept(1, server().Args());
  const absl::StatusOr<OpId> connecting = a_.Connect(listener_.local(), client().Args());
  const Event connected = Await(client(), connecting);
  EXPECT_TRUE(connected.ok()) << connected.status();
  const Event accepted = Await(server(), accepting);
  EXPECT_TRUE(accepted.ok()) << accepted.status();
  if (!connected.ok() || !accepted.ok()) return false;
  b_ = ValueOf(server().context.TakeAccepted(accepted.accepted));
  return b_.valid();
}

}  // namespace esdp::sockets
