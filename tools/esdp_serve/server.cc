#include "tools/esdp_serve/server.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace esdp_serve {
namespace {

constexpr absl::Duration kTick = absl::Seconds(1);
constexpr absl::Duration kStopPatience = absl::Seconds(10);
constexpr uint32_t kUnwelcomeMax = 16;    // that are told to come again, at a time
constexpr uint64_t kOperationsEach = 16;  // receives, what is in slots, a Close
constexpr uint64_t kPerSlot = uint64_t{1} << 20;
constexpr uint64_t kStalledFactor = 5;  // how much longer where nobody is short of slots

// A quarter of what the process may open: clients need some too.
size_t FilesToKeepOpen() {
  constexpr size_t kMost = 1024;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return std::min<size_t>(kMost, limit.rlim_cur / 4);
}

}  // namespace

Server::Server(const Options& options) : options_(options), files_(FilesToKeepOpen()) {}

absl::StatusOr<std::unique_ptr<Server>> Server::Open(const Options& options, Metrics& metrics) {
  std::unique_ptr<Server> server(new Server(options));
  if (absl::Status status = server->Start(metrics); !status.ok()) return status;
  return server;
}

// What workers do is of a session: they end first.
Server::~Server() { workers_.reset(); }

absl::Status Server::Start(Metrics& metrics) {
  auto root = esdp_files::Root::Open(
      options_.root, {.follow_links = options_.links, .one_file_system = options_.one_file_system});
  if (!root.ok()) return root.status();
  root_ = *std::move(root);
  esdp::ContextOptions context_options{.fabric = options_.fabric};
  context_options.limits.file_pool_max = options_.slots * kPerSlot;
  auto context = esdp::Context::Open(context_options);
  if (!context.ok()) return context.status();
  context_ = *std::move(context);
  const auto depth = static_cast<uint32_t>((options_.clients + kUnwelcomeMax) * kOperationsEach);
  auto queue = context_.CreateQueue({.depth = depth + 2 * kUnwelcomeMax});
  if (!queue.ok()) return queue.status();
  queue_ = *std::move(queue);
  const auto count = static_cast<uint32_t>(options_.slots);
  auto slots = Slots::Make(context_, count);
  if (!slots.ok()) return slots.status();
  slots_ = *std::move(slots);
  shares_.emplace(Shares::Limits{.slots = count});
  workers_.emplace(static_cast<int>(options_.threads), [this] { queue_.Wake(); });
  services_.emplace(
      Services{context_, queue_, *slots_, *shares_, *workers_, files_, *root_, metrics, options_});
  return Listen();
}

absl::Status Server::Listen() {
  auto listener = context_.CreateSocket(options_.listen.family());
  if (!listener.ok()) return listener.status();
  listener_ = *std::move(listener);
  if (absl::Status status = listener_.Bind(options_.listen); !status.ok()) return status;
  constexpr int kBacklog = 128;
  if (absl::Status status = listener_.Listen(kBacklog); !status.ok()) return status;
  return listener_.Accept(0, {.queue = queue_}).status();
}

void Server::Stop() {
  stops_ += 1;
  queue_.Wake();
}

absl::Status Server::Run() {
  next_tick_ = context_.Now() + kTick;
  while (stopped_ == 0 || !sessions_.empty()) {
    TakeEvents();
    workers_->TakeDone();
    GiveSlots();
    DropEnded();
    if (context_.Now() >= next_tick_) Tick();
    if (stops_ > stopped_) BeginToStop();
    if (!accepting_.ok() && stopped_ == 0) return accepting_;
  }
  workers_.reset();
  // Clients may not have read yet what they were told last.
  context_.Close(context_.Now() + (stopped_ > 1 ? absl::ZeroDuration() : kStopPatience))
      .IgnoreError();
  return absl::OkStatus();
}

void Server::TakeEvents() {
  const auto count = queue_.Dequeue(std::span(events_), {.deadline = next_tick_});
  // Cancelled: woken, for what workers have done.
  for (size_t i = 0; count.ok() && i < *count; ++i) OnEvent(events_[i]);
}

void Server::OnEvent(const esdp::Event& event) {
  if (event.type == esdp::EventType::kAccept) return OnAccept(event);
  const auto found = sessions_.find(Channel::ClientOf(event));
  if (found != sessions_.end()) found->second->OnEvent(event);
}

void Server::OnAccept(const esdp::Event& event) {
  if (!event.ok()) {
    if (event.terminal()) accepting_ = event.status();
    return;
  }
  auto socket = context_.TakeAccepted(event.accepted);
  if (!socket.ok() || sessions_.size() >= options_.clients + kUnwelcomeMax) return;
  const bool welcome = sessions_.size() < options_.clients;
  services_->metrics.clients_accepted += 1;
  services_->metrics.clients += 1;
  const uint32_t id = next_id_++;
  sessions_[id] = std::make_unique<Session>(id, *std::move(socket), welcome, *services_);
}

void Server::GiveSlots() {
  while (const auto client = shares_->Next(context_.Now())) {
    sessions_.at(*client)->OnSlot(slots_->Take());
  }
}

void Server::DropEnded() {
  const size_t dropped =
      std::erase_if(sessions_, [](const auto& one) { return one.second->over(); });
  services_->metrics.clients -= dropped;
}

void Server::Tick() {
  const absl::Time now = context_.Now();
  next_tick_ = now + kTick;
  files_.DropOld(now);
  for (const auto& [id, session] : sessions_) session->OnTick(now);
  const uint64_t seconds = options_.stalled_seconds * (shares_->Short() ? 1 : kStalledFactor);
  for (const uint32_t id : shares_->Stalled(absl::Seconds(seconds), now)) {
    services_->metrics.clients_stalled += 1;
    sessions_.at(id)->Abort();
  }
  if (now < stop_by_) return;
  for (const auto& [id, session] : sessions_) session->Abort();
}

void Server::BeginToStop() {
  if (++stopped_ > 1) {
    stop_by_ = absl::InfinitePast();
    return Tick();
  }
  listener_ = esdp::Socket();
  stop_by_ = context_.Now() + absl::Seconds(options_.grace_seconds);
  for (const auto& [id, session] : sessions_) session->Stop();
}

}  // namespace esdp_serve
