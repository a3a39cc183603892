#include <cerrno>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "esdp/context.h"
#include "esdp/status.h"
#include "impl/switch/engine/acquaintances.h"
#include "impl/switch/engine/direct_stream.h"
#include "impl/switch/engine/engine.h"
#include "impl/switch/engine/host.h"
#include "impl/switch/engine/inside.h"
#include "impl/switch/engine/program_end.h"
#include "impl/switch/engine_interface.h"

// What the library that is preloaded calls. No exception leaves: without memory a connection stays
// TCP.

namespace esdp::switching {
namespace {

template <typename Do>
int Guarded(const Do& act) {
  try {
    return act();
  } catch (...) {
    return ENOMEM;
  }
}

int RelayNew(const RelayRequest& request, RelayMade& made) {
  return Guarded([&] { return Engine::Current().Add(request, made); });
}

void Prepare(Mode mode) {
  (void)Guarded([&] {
    Engine::Current().Prepare(mode);
    return 0;
  });
}

void AbortRelay(uint64_t id) {
  (void)Guarded([&] {
    if (Engine::Exists()) Engine::Current().Abort(id);
    return 0;
  });
}

// `act` with the stream of a connection that goes directly.
template <typename Act>
Moved Directly(uint64_t id, const Act& act) {
  Moved moved = {.bytes = -1, .error = Moved::kNotDirect};
  const int error = Guarded([&] {
    const std::shared_ptr<DirectStream> stream = Directs().Find(id);
    if (stream == nullptr) return 0;
    moved = act(*stream);
    return 0;
  });
  return error == 0 ? moved : Moved{.bytes = -1, .error = error};
}

template <typename Act>
Moved MoveDirectly(uint64_t id, const Act& act) {
  return Directly(id, [&](DirectStream& stream) {
    const Moved moved = act(stream);
    if (moved.bytes > 0) stream.TellStatus();
    Engine::Current().AfterDirectCall(id);
    return moved;
  });
}

Moved Receive(uint64_t id, msghdr& message, int flags, bool waits) {
  return MoveDirectly(id, [&](DirectStream& each) { return each.Receive(message, flags, waits); });
}

Moved Send(uint64_t id, const msghdr& message, int flags, bool waits) {
  return MoveDirectly(id, [&](DirectStream& each) { return each.Send(message, flags, waits); });
}

int Shut(uint64_t id, int how) {
  return Directly(id,
                  [&](DirectStream& each) {
                    const int error = each.Shutdown(how);
                    // There may be one that is about to wait.
                    if (error != EINVAL && how != SHUT_WR && each.SendReadersAway()) {
                      Engine::Current().SendReadersAway(id);
                    }
                    return Moved{0, error};
                  })
      .error;
}

Moved Unread(uint64_t id) {
  return Directly(id, [](DirectStream& each) { return each.Unread(); });
}

Moved AtMark(uint64_t id) {
  return Directly(id, [](DirectStream& each) { return each.AtMark(); });
}

void SetOptions(uint64_t id, int64_t receive_ns, int64_t send_ns, bool urgent_in_line) {
  (void)Directly(id, [&](DirectStream& each) {
    each.SetUrgentInLine(urgent_in_line);
    each.SetTimes(absl::Nanoseconds(receive_ns), absl::Nanoseconds(send_ns));
    return Moved{};
  });
}

void ShowDirect(uint64_t id, int shown) {
  Descriptor end(shown);
  (void)Directly(id, [&](DirectStream& each) {
    each.Show(std::move(end));
    return Moved{};
  });
}

void ShowEdges(uint64_t id) {
  (void)Directly(id, [](DirectStream& each) {
    each.ShowEdges();
    return Moved{};
  });
}

int Wait(int set, int64_t nanoseconds, const sigset_t* signals) {
  return Guarded([&] {
    Engine::Domain* const direct = Engine::Exists() ? Engine::Current().direct_domain() : nullptr;
    const Inside call;
    if (direct == nullptr || !call.entered()) return ENOTSUP;
    if (set >= 0 && !Engine::Current().IsCalm(Directs().count())) return ENOTSUP;
    WaitBesideArgs args = {.signals = signals, .comes_back = set >= 0};
    if (nanoseconds >= 0) args.deadline = direct->context.After(absl::Nanoseconds(nanoseconds));
    const absl::StatusOr<bool> waited = direct->context.WaitBeside(set, args);
    if (waited.ok()) return *waited ? 0 : ETIMEDOUT;
    return KindOf(waited.status()) == ErrorKind::kSignal ? EINTR : ENOTSUP;
  });
}

void EndWait() {
  (void)Guarded([&] {
    Engine::Domain* const direct = Engine::Exists() ? Engine::Current().direct_domain() : nullptr;
    if (direct != nullptr) direct->context.WakeWaitBeside();
    return 0;
  });
}

int RelayInstead(uint64_t id, const ConnectionNames& names, int& fresh) {
  return Guarded([&] { return Engine::Current().RelayInstead(id, names, fresh); });
}

void CloseDirect(uint64_t id, bool reset) {
  (void)Guarded([&] {
    if (Engine::Exists()) Engine::Current().CloseDirect(id, reset);
    return 0;
  });
}

void Note(const PlainNote& note) {
  (void)Guarded([&] {
    const StatusRecord record = {.number = note.number,
                                 .shown = Shown::kPlain,
                                 .role = note.role,
                                 .verdict = note.verdict,
                                 .reason = note.reason};
    (void)Status().Add(note.names, record);
    Tell(3, "number %d stays TCP, reason %d", note.number, static_cast<int>(note.reason));
    return 0;
  });
}

Learned LearnedOf(const Name& peer) {
  Learned learned = Learned::kNothing;
  (void)Guarded([&] {
    learned = Peers().Of(peer);
    return 0;
  });
  return learned;
}

void Later(unsigned milliseconds, uint64_t what) {
  (void)Guarded([&] {
    Engine::Current().Later(milliseconds, [what] { host.due(what); });
    return 0;
  });
}

void Flush(unsigned milliseconds) {
  (void)Guarded([&] {
    if (Engine::Exists()) Engine::Current().Flush(milliseconds);
    return 0;
  });
}

void AfterFork() {
  (void)Guarded([] {
    Engine::AbandonParents();
    return 0;
  });
}

}  // namespace

extern "C" [[gnu::visibility("default"), gnu::used]] bool esdp_switch_engine(
    const HostCalls& loaded_by, EngineCalls& engine) {
  if (loaded_by.version != kEngineVersion) return false;
  host = loaded_by;
  FindRealCalls();
  engine = {.relay = RelayNew,
            .prepare = Prepare,
            .abort = AbortRelay,
            .receive = Receive,
            .send = Send,
            .shut = Shut,
            .unread = Unread,
            .at_mark = AtMark,
            .options = SetOptions,
            .expect_urgent = [] { ProgramEnd::ExpectUrgent(); },
            .show = ShowDirect,
            .edges = ShowEdges,
            .wait = Wait,
            .end_wait = EndWait,
            .relay_instead = RelayInstead,
            .close_direct = CloseDirect,
            .note = Note,
            .learned = LearnedOf,
            .runs = Engine::Exists,
            .later = Later,
            .flush = Flush,
            .after_fork = AfterFork};
  return true;
}

}  // namespace esdp::switching
