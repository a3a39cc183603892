#include "impl/switch/engine/engine.h"

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "impl/switch/engine/acquaintances.h"
#include "impl/switch/engine/direct_stream.h"
#include "impl/switch/engine/program_end.h"
#include "impl/switch/engine/relay.h"
#include "impl/switch/monotonic.h"
#include "impl/switch/signals_blocked.h"

namespace esdp::switching {
namespace {

// Sends and receives of a relay, the set-up, a move, the end.
constexpr size_t kEventsOfRelay = 16;
constexpr size_t kRoomAtFirst = 32 * kEventsOfRelay;
constexpr auto kPreparedWithin = std::chrono::milliseconds(100);
constexpr size_t kEventsAtOnce = 64;
constexpr unsigned kSourceShift = 56;
// How long a process that exits waits for peers that have all, but have not closed yet.
constexpr unsigned kFlushGrace = 250;

// A program that may have little memory, as vsftpd gives its sessions: malloc would take 64 MiB and
// more of it for each thread, of addresses alone.
void SpareAddresses() {
  rlimit limit = {};
  const bool is_limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  if (is_limited) (void)mallopt(M_ARENA_MAX, 1);
}

int CreateThread(pthread_t& thread, void* (*run)(void*), void* of) {
  const libc::SignalsBlocked blocked;
  return pthread_create(&thread, nullptr, run, of);
}

}  // namespace

int Engine::Start() {
  if (started_) return 0;
  SpareAddresses();
  epoll_.Reset(epoll_create1(EPOLL_CLOEXEC));
  wake_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_.valid() || !wake_.valid()) return errno;
  if (!Watch(wake_.get(), EPOLLIN, Source::kWake, 0)) return errno;
  pthread_t thread;
  const int error = CreateThread(
      thread,
      [](void* self) -> void* {
        static_cast<Engine*>(self)->Run();
        return nullptr;
      },
      this);
  if (error != 0) return error;
  (void)pthread_setname_np(thread, "esdp-switch");
  (void)pthread_detach(thread);
  started_ = true;
  return 0;
}

int Engine::Add(const RelayRequest& request, RelayMade& made) {
  const std::lock_guard lock(mutex_);
  if (const int error = Start(); error != 0) return error;
  std::array<int, 2> pair{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) return errno;
  Descriptor program(pair[0]), ours(pair[1]);
  KeepUrgentInLine(ours.get());
  ProgramEnd::SetNames(ours.get(), request.names);
  Descriptor tcp(fcntl(request.descriptor, F_DUPFD_CLOEXEC, 0));
  if (!tcp.valid()) return errno;
  const uint64_t id = next_id_++;
  auto relay = std::make_shared<std::unique_ptr<Relay>>(
      std::make_unique<Relay>(*this, id, request, std::move(ours), std::move(tcp)));
  if (Domain* const direct = direct_domain(); direct != nullptr) {
    MakeRoom(*direct, relays_now_.load() + 1);
  }
  // Here, and not on the engine's thread, which would have to be woken for it.
  const bool posted = (*relay)->PostEarly();
  resets_.emplace(id, (*relay)->reset());
  relays_now_.fetch_add(1);
  calm_.Disturb();
  asked_.emplace_back([this, id, relay] {
    Relay& begun = **relay;
    relays_.emplace(id, std::move(*relay));
    begun.Begin();
  });
  if (!posted) Wake();
  made = {.program_end = program.Release(), .id = id};
  return 0;
}

void Engine::Ask(std::function<void()> act) {
  const std::lock_guard lock(mutex_);
  asked_.push_back(std::move(act));
  if (Start() == 0) Wake();
}

// Under the lock.
void Engine::Wake() {
  if (!std::exchange(woken_, true)) (void)eventfd_write(wake_.get(), 1);
}

void Engine::AskRelay(uint64_t id, std::function<void(Relay&)> act) {
  Ask([this, id, act = std::move(act)] {
    if (const auto found = relays_.find(id); found != relays_.end()) act(*found->second);
  });
}

void Engine::Abort(uint64_t id) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = resets_.find(id); found != resets_.end()) *found->second = true;
  }
  AskRelay(id, [](Relay& relay) { relay.Abort(); });
}

int Engine::RelayInstead(uint64_t id, const ConnectionNames& names, int& fresh) {
  const std::shared_ptr<DirectStream> direct = Directs().Find(id);
  if (direct == nullptr) return ENOTCONN;
  // A child that shares our memory, and not our descriptors, may ask: they are closed here.
  auto ends = std::make_shared<DirectStream::Ends>(direct->StopShowing());
  if (!ends->hidden.valid()) return EMFILE;
  if (ends->fresh.valid()) ProgramEnd::SetNames(ends->hidden.get(), names);
  (void)Directs().Take(id);
  fresh = ends->fresh.Release();
  AskRelay(id, [ends](Relay& relay) {
    ends->shown.Reset();
    relay.BeginStream(std::move(ends->hidden));
  });
  return 0;
}

void Engine::CloseDirect(uint64_t id, bool reset) {
  const std::shared_ptr<DirectStream> direct = Directs().Take(id);
  if (direct == nullptr) return;
  const bool resets = reset || direct->Unread().bytes > 0;
  direct->CloseShown();
  calm_.Disturb();
  AskRelay(id, [resets](Relay& relay) { relay.CloseDirect(resets); });
}

void Engine::SendReadersAway(uint64_t id) {
  AskRelay(id, [](Relay& relay) { relay.SendReadersAway(); });
}

void Engine::AfterDirectCall(uint64_t id) {
  if (Directs().Find(id) == nullptr) AskRelay(id, [](Relay& relay) { relay.OnTcp(); });
}

void Engine::Later(unsigned milliseconds, std::function<void()> act) {
  const int64_t when = libc::MonotonicMilliseconds() + milliseconds;
  if (on_own_thread_) {
    timers_.emplace(when, std::move(act));
    return;
  }
  Ask([this, when, act = std::move(act)] { timers_.emplace(when, act); });
}

void Engine::RelayLater(uint64_t id, unsigned milliseconds, std::function<void(Relay&)> act) {
  Later(milliseconds, [this, id, act = std::move(act)] {
    if (const auto found = relays_.find(id); found != relays_.end()) act(*found->second);
  });
}

void Engine::Flush(unsigned milliseconds) {
  if (relays_now_.load() == 0) return;
  Ask([this] { flushing_ = true; });
  std::unique_lock lock(mutex_);
  (void)flushed_.wait_for(lock, std::chrono::milliseconds(milliseconds),
                          [this] { return relays_now_.load() == 0 || settled_; });
  // What has left is the peers' to take.
  if (!settled_) return;
  (void)flushed_.wait_for(lock, std::chrono::milliseconds(kFlushGrace),
                          [this] { return relays_now_.load() == 0; });
}

bool Engine::Watch(int descriptor, uint32_t events, Source source, uint64_t id) {
  epoll_event event = {
      .events = events,
      .data = {.u64 = uint64_t{static_cast<uint8_t>(source)} << kSourceShift | id}};
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

void Engine::Unwatch(int descriptor) {
  epoll_event none = {};
  (void)epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, &none);
}

absl::StatusOr<Engine::Domain*> Engine::DomainOf(Mode mode) {
  std::optional<Domain>& domain = mode == Mode::kRelay ? relayed_ : direct_;
  if (!domain.has_value()) {
    absl::StatusOr<Domain> opened = Open(mode);
    if (!opened.ok()) {
      Tell(9, "no Context: %s", std::string(opened.status().message()).c_str());
      return opened.status();
    }
    domain = *std::move(opened);
    if (mode == Mode::kDirect) direct_now_ = &*domain;
  }
  const std::lock_guard lock(mutex_);
  MakeRoom(*domain, relays_now_.load());
  return &*domain;
}

// A queue for more relays than most programs have would be most of what the switch takes of memory.
void Engine::MakeRoom(Domain& domain, size_t relays) {
  const size_t needed = relays * kEventsOfRelay;
  if (needed <= domain.room) return;
  const size_t room = std::max(needed, 2 * domain.room);
  if (domain.queue.Resize(room).ok()) domain.room = room;
}

void Engine::Prepare(Mode mode) {
  std::atomic<bool>& done = is_prepared_[static_cast<size_t>(mode)];
  if (done.load(std::memory_order_acquire)) return;
  // A handler that connects would wait for the lock of the call that it has interrupted.
  const libc::SignalsBlocked blocked;
  std::unique_lock lock(mutex_);
  if (Start() != 0) return;
  asked_.emplace_back([this, mode, &done] {
    (void)DomainOf(mode);
    const std::lock_guard told(mutex_);
    done.store(true, std::memory_order_release);
    prepared_.notify_all();
  });
  Wake();
  (void)prepared_.wait_for(lock, kPreparedWithin, [&done] { return done.load(); });
}

absl::StatusOr<Engine::Domain> Engine::Open(Mode mode) {
  const bool moves = mode == Mode::kDirect;
  absl::StatusOr<Context> context = Context::Open({
      .fabric = moves ? "auto" : "qpip",
      .progress = moves ? Progress::kThread : Progress::kManual,
      .peer_moves = moves ? PeerMoves::kGuarded : PeerMoves::kRefused,
      .moves_at_once_max = 1u << 20,
      .half_open_max = 1u << 16,
      .log =
          [](std::string_view line) {
            Tell(3, "%.*s", static_cast<int>(line.size()), line.data());
          },
  });
  if (!context.ok()) return context.status();
  absl::StatusOr<EventQueue> queue = context->CreateQueue({.depth = kRoomAtFirst});
  if (!queue.ok()) return queue.status();
  if (!Watch(queue->fd(), EPOLLIN, Source::kQueue, 0)) return absl::UnavailableError("epoll");
  return Domain{*std::move(context), *std::move(queue), kRoomAtFirst};
}

// --- the thread ----------------------------------------------------------------------------------

void Engine::Run() {
  on_own_thread_ = true;
  std::array<epoll_event, kEventsAtOnce> events;
  for (;;) {
    const int count =
        epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), NextTimeout());
    bool moves = false;
    // First: an abort is asked for before the close that follows it.
    for (int i = 0; i < count; ++i) {
      if (events[static_cast<size_t>(i)].data.u64 == 0) TakeAsked();
    }
    for (int i = 0; i < count; ++i) {
      const epoll_event& each = events[static_cast<size_t>(i)];
      const uint64_t id = each.data.u64 & ((uint64_t{1} << kSourceShift) - 1);
      const auto source = static_cast<Source>(each.data.u64 >> kSourceShift);
      moves = moves || source == Source::kQueue;
      const auto found = relays_.find(id);
      if (found == relays_.end()) continue;
      if (source == Source::kProgram) found->second->OnProgram();
      if (source == Source::kTcp) found->second->OnTcp();
    }
    RunTimers();
    if ((moves || count > 0) && relayed_.has_value()) TakeEvents(relayed_->queue);
    if (moves && direct_.has_value()) TakeEvents(direct_->queue);
    CheckFlush();
    DropGone();
  }
}

void Engine::TakeAsked() {
  std::vector<std::function<void()>> asked;
  {
    const std::lock_guard lock(mutex_);
    eventfd_t rung = 0;
    if (std::exchange(woken_, false)) (void)eventfd_read(wake_.get(), &rung);
    asked.swap(asked_);
  }
  for (const auto& each : asked) each();
}

void Engine::TakeEvents(EventQueue& queue) {
  std::array<Event, kEventsAtOnce> events;
  size_t count = 0;
  do {
    count = queue.TryDequeue(std::span(events)).value_or(0);
    for (size_t i = 0; i < count; ++i) {
      Relay* const relay = FindRelay(events[i].cookie >> kCookieShift);
      if (relay != nullptr) relay->OnEvent(events[i]);
    }
  } while (count == events.size());
}

// What was posted early may end before the engine has been told of its relay.
Relay* Engine::FindRelay(uint64_t id) {
  auto found = relays_.find(id);
  if (found == relays_.end()) {
    TakeAsked();
    found = relays_.find(id);
  }
  return found != relays_.end() ? found->second.get() : nullptr;
}

void Engine::RunTimers() {
  const int64_t now = libc::MonotonicMilliseconds();
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const auto act = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    act();
  }
}

int Engine::NextTimeout() {
  if (timers_.empty()) return -1;
  const int64_t left = timers_.begin()->first - libc::MonotonicMilliseconds();
  return static_cast<int>(std::max<int64_t>(left, 0));
}

void Engine::DropGone() {
  for (const uint64_t id : gone_) {
    if (relays_.erase(id) == 0) continue;
    relays_now_.fetch_sub(1);
    calm_.Disturb();
    const std::lock_guard lock(mutex_);
    resets_.erase(id);
  }
  gone_.clear();
  if (flushing_ && relays_now_.load() == 0) {
    const std::lock_guard lock(mutex_);
    flushed_.notify_all();
  }
}

void Engine::CheckFlush() {
  if (!flushing_) return;
  bool all = true;
  for (const auto& [id, relay] : relays_) all = relay->Flush() && all;
  if (!all) return;
  const std::lock_guard lock(mutex_);
  settled_ = asked_.empty();
  flushed_.notify_all();
}

}  // namespace esdp::switching
