#include "impl/switch/shim/switch_taker.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "impl/switch/libc_calls.h"
#include "impl/switch/shim/adoption.h"
#include "impl/switch/shim/decisions.h"
#include "impl/switch/shim/descriptors.h"
#include "impl/switch/shim/direct.h"
#include "impl/switch/shim/engine_link.h"
#include "impl/switch/shim/limits.h"
#include "impl/switch/shim/port_name.h"
#include "impl/switch/shim/program_rules.h"
#include "impl/switch/shim/relayed.h"
#include "impl/switch/shim/table.h"

// Connections as they are made and end, and the bytes of those that are not decided.

namespace esdp::switching {
namespace {

using libc::Fail;
using libc::real;

constinit std::atomic<pid_t> this_process{0};

// A program that was told to read, and does not wait, is not to find nothing there if what follows
// the request is on its way.
void WaitForFirst(int fd) {
  Connection* const connection = table.Find(fd);
  if (connection == nullptr || !connection->awaits_first.load(std::memory_order_relaxed)) return;
  if (!connection->awaits_first.exchange(false)) return;
  const KeptErrno kept;
  ShowReadinessOf(fd);
  pollfd one = {.fd = fd, .events = POLLIN, .revents = 0};
  (void)real.poll.get()(&one, 1, static_cast<int>(connection->rule->options.wait_ms));
}

libc::Taker::Count ReceiveSwitched(int fd, msghdr& message, int flags) {
  if ((flags & MSG_OOB) == 0) WaitForFirst(fd);
  const libc::Taker::Count moved = ReceiveDirect(fd, message, flags);
  return moved.has_value() ? moved : ReceiveRelayed(fd, message, flags);
}

libc::Taker::Count SendSwitched(int fd, const msghdr& message, int flags) {
  const libc::Taker::Count moved = SendDirect(fd, message, flags);
  return moved.has_value() ? moved : SendRelayed(fd, message, flags);
}

bool IsTcp(int fd) {
  int protocol = 0;
  socklen_t bytes = sizeof(protocol);
  return real.getsockopt.get()(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &bytes) == 0 &&
         protocol == IPPROTO_TCP;
}

const Rule* RuleOfServer(int fd, Endpoint& local) {
  Name name = {};
  socklen_t bytes = sizeof(name);
  if (real.getsockname.get()(fd, &name.any, &bytes) != 0) return nullptr;
  if (!ToEndpoint(name, bytes, local)) return nullptr;
  const Rule* const rule = rules.Find(Role::kServer, local);
  return rule != nullptr && rule->verdict != Verdict::kTcp ? rule : nullptr;
}

bool HoldsPortName(uint16_t port) {
  bool held = false;
  table.ForEach([&](const Connection& each) {
    held = held || (each.state == State::kListening && each.port == port && each.below >= 0);
  });
  return held;
}

// A listener by a rule: the name of its port tells processes of this host.
void TellOfPort(int listener, const Rule& rule, uint16_t port) {
  Connection* connection = table.Find(listener);
  if (connection == nullptr || connection->state != State::kListening) {
    OptionsSet set;
    if (connection != nullptr && connection->state == State::kCandidate) {
      set.Inherit(connection->options_set);
    } else {
      set.NoteAll();
    }
    if (connection != nullptr) Forget(listener);
    connection = table.Insert(listener, State::kListening);
    if (connection != nullptr) connection->options_set.Inherit(set);
  }
  if (connection == nullptr) return;
  connection->rule = &rule;
  connection->port = port;
  if (connection->below < 0 && !HoldsPortName(port)) connection->below = HoldPortName(port);
}

}  // namespace

bool IsThisProcess() { return this_process.load(std::memory_order_relaxed) == getpid(); }
void SetThisProcess() { this_process.store(getpid(), std::memory_order_relaxed); }

SwitchTaker::Count SwitchTaker::Receive(int fd, msghdr& message, int flags) {
  int error = 0;
  switch (StateOf(fd)) {
    case State::kRelayed:
    case State::kSettingUp:
    case State::kDirect:
      return ReceiveSwitched(fd, message, flags);
    case State::kAccepted:
    case State::kSpoke:
      if ((flags & MSG_OOB) != 0) return std::nullopt;  // a request of SDP has no urgent byte
      error = DecideBeforeRead(fd, (flags & MSG_DONTWAIT) != 0);
      break;
    case State::kConnecting:
      error = DecideConnected(fd);
      break;
    default:
      return std::nullopt;
  }
  if (error != 0) return Fail(error);
  return IsSwitched(StateOf(fd)) ? ReceiveSwitched(fd, message, flags) : std::nullopt;
}

SwitchTaker::Count SwitchTaker::Send(int fd, const msghdr& message, int flags) {
  int error = 0;
  switch (StateOf(fd)) {
    case State::kRelayed:
    case State::kSettingUp:
    case State::kDirect:
      return SendSwitched(fd, message, flags);
    case State::kAccepted:
      error = DecideBeforeWrite(fd);
      break;
    case State::kConnecting:
      error = DecideConnected(fd);
      break;
    case State::kCandidate:
      if (message.msg_name != nullptr && IsThisProcess()) {  // connects by it
        const TableLock lock;
        Forget(fd);
      }
      return std::nullopt;
    default:
      return std::nullopt;
  }
  if (error != 0) return Fail(error);
  return IsSwitched(StateOf(fd)) ? SendSwitched(fd, message, flags) : std::nullopt;
}

SwitchTaker::Answer SwitchTaker::Shutdown(int fd, int how) noexcept {
  int error = 0;
  const State state = StateOf(fd);
  if (state == State::kAccepted) error = DecideBeforeWrite(fd);
  if (state == State::kConnecting) error = DecideConnected(fd);
  if (error == 0 && IsSwitched(StateOf(fd))) return ShutDirect(fd, how);
  return error == 0 ? std::nullopt : Answer(Fail(error));
}

SwitchTaker::Answer SwitchTaker::Close(int fd) noexcept {
  if (!IsThisProcess()) return std::nullopt;
  if (IsOwn(fd)) return Fail(EBADF);
  if (StateOf(fd) == State::kAccepted) DecideBeforeClose(fd);
  const KeptErrno kept;
  const TableLock lock;
  Connection* const connection = FindRelayed(fd);
  // What stdio has closed nobody saw: this may be the last one.
  if (connection != nullptr && connection->numbers > 1) {
    table.ForEachNumber(*connection, [](int each) { (void)FindRelayed(each); });
  }
  Forget(fd);
  return std::nullopt;
}

SwitchTaker::Answer SwitchTaker::Bind(int fd, const sockaddr* /*address*/,
                                      socklen_t /*len*/) noexcept {
  return IsSwitched(StateOf(fd)) ? Answer(Fail(EINVAL)) : std::nullopt;
}

SwitchTaker::Answer SwitchTaker::Listen(int fd, int /*backlog*/) noexcept {
  return IsSwitched(StateOf(fd)) ? Answer(Fail(EINVAL)) : std::nullopt;
}

SwitchTaker::Answer SwitchTaker::Accept(int fd, sockaddr* /*address*/, socklen_t* /*len*/,
                                        int /*flags*/) noexcept {
  return IsSwitched(StateOf(fd)) ? Answer(Fail(EINVAL)) : std::nullopt;
}

namespace {

// Why a candidate is to connect by TCP; kNone where it is not.
Reason WhyPlain(Connection& connection, int fd, const Name& peer) {
  const Rule* const rule = connection.rule;
  if (rule == nullptr) return Reason::kNoRule;
  if (rule->verdict == Verdict::kTcp) return Reason::kRuleTcp;
  if (rule->verdict == Verdict::kSdp) return Reason::kNone;
  if (engine.learned(peer) == Learned::kSilent) return Reason::kAnsweredPlain;
  Endpoint local;
  FillLocalName(fd, connection.names);
  (void)ToEndpoint(connection.names.local, connection.names.local_bytes, local);
  return local.port != 0 ? Reason::kBoundPort : Reason::kNone;
}

// What a connect is to come to by the rules.
enum class Chosen : uint8_t { kPlain, kMaybeSdp, kLikelySdp };

Chosen ChooseByRule(int fd, const sockaddr* address, socklen_t len) {
  const KeptErrno kept;
  const TableLock lock;
  Connection* const connection = table.Find(fd);
  Name name = {};
  Endpoint peer;
  if (connection == nullptr || len > sizeof(name) || address == nullptr) return Chosen::kPlain;
  std::copy_n(reinterpret_cast<const char*>(address), len, reinterpret_cast<char*>(&name));
  if (!ToEndpoint(name, len, peer)) return Chosen::kPlain;
  connection->rule = rules.Find(Role::kClient, peer);
  if (const Reason reason = WhyPlain(*connection, fd, name); reason != Reason::kNone) {
    MakePlain(*connection, reason);
    return Chosen::kPlain;
  }
  // One that takes a single connection may have closed its listener right behind that.
  connection->name_was_held = PortNameIsHeld(peer.port);
  connection->state = State::kConnecting;
  const bool likely = connection->rule->verdict == Verdict::kSdp || connection->name_was_held ||
                      IsKnownToSpeak(name, peer);
  return likely ? Chosen::kLikelySdp : Chosen::kMaybeSdp;
}

}  // namespace

SwitchTaker::Answer SwitchTaker::Connect(int fd, const sockaddr* address, socklen_t len) noexcept {
  Connection* const connection = table.Find(fd);
  if (connection == nullptr) return std::nullopt;
  const State state = connection->state;
  if (IsSwitched(state)) {
    // As of TCP the call behind one that did not wait succeeds, and only the one behind that fails.
    return connection->connect_under_way.exchange(false) ? 0 : Fail(EISCONN);
  }
  if (state == State::kListening || !IsThisProcess()) return std::nullopt;
  if (state == State::kCandidate) {
    const Chosen chosen = ChooseByRule(fd, address, len);
    if (chosen == Chosen::kPlain) return std::nullopt;
    // Only then the process gets a thread for it.
    if (chosen == Chosen::kLikelySdp) engine.prepare(connection->rule->options.mode);
  }
  const int result = real.connect.get()(fd, address, len);
  connection->connect_under_way = result != 0 && (errno == EINPROGRESS || errno == EINTR);
  if (result != 0 && errno != EISCONN) return result;
  const int before = errno;
  const int error = DecideConnected(fd);
  errno = before;
  return error == 0 ? result : Fail(error);
}

void SwitchTaker::Listening(int listener) {
  const KeptErrno kept;
  Endpoint local;
  if (!IsThisProcess() || !IsTcp(listener)) return;
  const TableLock lock;
  if (const Rule* const rule = RuleOfServer(listener, local); rule != nullptr) {
    TellOfPort(listener, *rule, local.port);
  }
}

int SwitchTaker::Accepted(int listener, int number) {
  if (!IsThisProcess()) return number;
  if (!IsWithinLimit(number)) return WithinLimit(number);
  const KeptErrno kept;
  const TableLock lock;
  Forget(number);
  Endpoint local;
  const Rule* const rule = RuleOfServer(number, local);
  if (rule == nullptr || !IsTcp(number)) return number;
  TellOfPort(listener, *rule, local.port);
  Connection* const connection = table.Insert(number, State::kAccepted);
  if (connection == nullptr) return number;
  connection->rule = rule;
  if (const Connection* const from = table.Find(listener)) {
    connection->options_set.Inherit(from->options_set);
  } else {
    connection->options_set.NoteAll();
  }
  AnswerSoon(*connection);
  return number;
}

void MakeCandidate(int number) {
  const KeptErrno kept;
  if (!IsThisProcess()) return;
  const TableLock lock;
  Forget(number);
  (void)table.Insert(number, State::kCandidate);
}

void LookAtInherited(int number) {
  Endpoint local;
  ConnectionNames names;
  const Rule* const rule = RuleOfServer(number, local);
  if (rule == nullptr || !IsTcp(number)) return;
  FillNames(number, names);
  if (names.peer_bytes == 0) return;
  const TableLock lock;
  // The same socket may be input and output.
  for (int before = 0; before < number; ++before) {
    Connection* const same = table.Find(before);
    if (same != nullptr && InodeOf(before) == InodeOf(number)) {
      return table.AddNumber(number, *same);
    }
  }
  Connection* const connection = table.Insert(number, State::kAccepted);
  if (connection == nullptr) return;
  connection->rule = rule;
  connection->options_set.NoteAll();
}

namespace {

// The set is told, and what it was told is noted: the event is looked at behind the call, which says
// what is no memory. Of who holds the registrations.
int TellSet(Connection& connection, int set, int operation, int fd, epoll_event* event) {
  const int result = real.epoll_ctl.get()(set, operation, fd, event);
  if (result == 0) connection.registrations.Note(set, operation, fd, event);
  return result;
}

// Where a connection is switched the number stays what it is but for who holds its registrations: so it
// takes no lock, which costs two system calls, of programs that tell their set of each wait. A child
// that shares our memory shares the sets as well. One that is undecided may become another file under
// the hands of the thread that waits by the set, which is up before this call has noted anything, and
// does not wait for a hold without end.
SwitchTaker::Answer TellSetOfSwitched(int set, int operation, int fd, epoll_event* event) {
  Connection* const connection = table.Find(fd);
  if (connection == nullptr) return std::nullopt;
  const Registrations::Hold hold(connection->registrations, Registrations::Hold::Waits::kNo);
  if (!hold.has() || !IsSwitched(connection->state) || table.Find(fd) != connection) {
    return std::nullopt;
  }
  return TellSet(*connection, set, operation, fd, event);
}

// The engine's thread may put something else under the number: not between the call and its note.
int TellSetLocked(int set, int operation, int fd, epoll_event* event) {
  const TableLock lock;
  Connection* const connection = table.Find(fd);
  if (connection == nullptr) return real.epoll_ctl.get()(set, operation, fd, event);
  const Registrations::Hold hold(connection->registrations, Registrations::Hold::Waits::kYes);
  return TellSet(*connection, set, operation, fd, event);
}

void ShowEdges(int fd) {
  Connection* const connection = table.Find(fd);
  if (connection == nullptr || connection->by_edges) return;
  const KeptErrno kept;
  const TableLock lock;
  if (table.Find(fd) == connection) ShowEdgesOf(*connection);
}

}  // namespace

SwitchTaker::Answer SwitchTaker::EpollCtl(int set, int operation, int fd, epoll_event* event) {
  if (StateOf(fd) == State::kListening) return std::nullopt;
  Answer told = TellSetOfSwitched(set, operation, fd, event);
  if (!told.has_value()) {
    if (!IsThisProcess()) return std::nullopt;
    told = TellSetLocked(set, operation, fd, event);
  }
  const bool adds = *told == 0 && operation != EPOLL_CTL_DEL;
  if (adds && (event->events & EPOLLET) != 0) ShowEdges(fd);
  return told;
}

}  // namespace esdp::switching
