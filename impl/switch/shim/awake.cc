#include "impl/switch/shim/awake.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "impl/switch/libc_calls.h"
#include "impl/switch/shim/adoption.h"
#include "impl/switch/shim/by_number.h"
#include "impl/switch/shim/decisions.h"
#include "impl/switch/shim/descriptors.h"
#include "impl/switch/shim/direct.h"
#include "impl/switch/shim/engine_link.h"
#include "impl/switch/shim/executed.h"
#include "impl/switch/shim/handed_over.h"
#include "impl/switch/shim/limits.h"
#include "impl/switch/shim/made.h"
#include "impl/switch/shim/opened.h"
#include "impl/switch/shim/program_rules.h"
#include "impl/switch/shim/switch_taker.h"
#include "impl/switch/shim/table.h"
#include "impl/switch/shim/waits.h"

namespace esdp::switching {
namespace {

constexpr unsigned kFlushMilliseconds = 5000;

constinit std::atomic<bool> connects_by_rule{false};

// Never destroyed: threads may call while the process exits.
union TakerRoom {
  constexpr TakerRoom() : taker() {}
  ~TakerRoom() {}
  SwitchTaker taker;
};
constinit TakerRoom room;

void ShowReset(uint64_t id) {
  const TableLock lock;
  Connection* const connection = table.FindRelay(id);
  if (connection == nullptr || FindRelayed(connection->number) == nullptr) return;
  // A pair tells of a reset where its other end goes with something unread.
  const char byte = 0;
  const ssize_t sent =
      libc::real.send.get()(connection->number, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0 && errno == EPIPE) connection->owes_reset = true;
}

void TakeReconnected(uint64_t id, int descriptor) {
  const TableLock lock;
  Connection* const connection = table.FindRelay(id);
  if (connection == nullptr) return;
  if (made.dup3.get()(descriptor, connection->below, O_CLOEXEC) < 0) return;
  ConnectionNames names;
  FillNames(descriptor, names);
  connection->names.local = names.local;
  connection->names.local_bytes = names.local_bytes;
}

bool GoDirect(uint64_t id, bool (*drain)(void* what), void* what, int& shown) {
  const TableLock lock;
  Connection* const connection = table.FindRelay(id);
  if (connection == nullptr || FindRelayed(connection->number) == nullptr) return false;
  if (connection->state != State::kSettingUp || drain == nullptr || !drain(what)) {
    connection->state = State::kRelayed;
    return false;
  }
  TellOptions(*connection);
  connection->state = State::kDirect;  // before the look at the flag, which has the other order
  if (connection->by_edges) engine.edges(id);
  if (connection->polled) shown = DuplicateHigh(connection->number);
  return true;
}

constexpr HostCalls kHost = {
    .real = libc::FindNext,
    .first_high = FirstHigh,
    .own = Own,
    .undivided = Undivided,
    .go_direct = GoDirect,
    .reset = ShowReset,
    .reconnected = TakeReconnected,
    .due = OnDue,
    .log = Log,
};

void BeforeFork() {
  TableLock::Hold();
  const KeptErrno kept;
  RelayAllInstead();
  NoteShared();
  HoldDescriptors();  // last: to relay makes some
}

void LetGo() {
  LetGoDescriptors();
  TableLock::LetGo();
}

void AfterFork() {
  NoteFork(/*in_child=*/false);
  LetGo();
}

// The child goes on with what is plain and undecided; what the parent relays it may use, and the
// parent goes on to move it.
void AfterForkInChild() {
  SetThisProcess();
  table.ForEach([](Connection& each) {
    each.waits.Forget();
    if (each.state == State::kListening) Own(each.below, false);  // the name of the port stays
    if (!IsSwitched(each.state)) return;
    each.foreign = true;
    each.relay = 0;  // the child's engine numbers its own
    each.below = -1;
  });
  CloseAllOwn();
  table.ForEach([](Connection& each) {
    if (each.state == State::kListening && each.below >= 0) Own(each.below, true);
  });
  engine.after_fork();
  ForgetWaiter();
  NoteFork(/*in_child=*/true);
  LetGo();
}

[[gnu::constructor]] void WakeUp(int count, char** arguments, char** /*environment*/) {
  const int before = errno;
  ResolveMade();
  ResolveOpened();
  ResolveExecuted();
  ResolveLimits();
  ResolveByNumber();
  const Environment environment = ReadEnvironment();
  if (environment.off) return KeepProgramLimit(environment.fd_base, false);
  ReadProgramRules(environment, count > 0 ? arguments[0] : "");
  const bool serves = rules.MayMatch(Role::kServer), connects = rules.MayMatch(Role::kClient);
  // Before the engine, whose descriptors are ours.
  KeepProgramLimit(environment.fd_base, serves || connects);
  if ((serves || connects) && table.Open() && LoadEngine(kHost) &&
      pthread_atfork(BeforeFork, AfterFork, AfterForkInChild) == 0) {
    SetThisProcess();
    libc::taker.store(&room.taker);
    libc::watches_listeners.store(serves || FirstBehindProgram() >= 0);
    connects_by_rule.store(connects);
    for (int number = 0; serves && number < 3; ++number) LookAtInherited(number);
    AdoptInherited();
  }
  errno = before;
}

[[gnu::destructor]] void BeforeEnd() { FlushBeforeExit(); }

}  // namespace

bool MayConnectByRule() { return connects_by_rule.load(std::memory_order_relaxed); }

void FlushBeforeExit() {
  if (engine.flush != nullptr && IsThisProcess()) engine.flush(kFlushMilliseconds);
}

}  // namespace esdp::switching
