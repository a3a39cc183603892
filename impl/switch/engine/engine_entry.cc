#include <cerrno>

#include "impl/switch/engine/engine.h"
#include "impl/switch/engine/host.h"
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

void AbortRelay(uint64_t id) {
  (void)Guarded([&] {
    if (Engine::Exists()) Engine::Current().Abort(id);
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
  engine = {.relay = RelayNew,
            .abort = AbortRelay,
            .note = Note,
            .learned = LearnedOf,
            .later = Later,
            .flush = Flush,
            .after_fork = AfterFork};
  return true;
}

}  // namespace esdp::switching
