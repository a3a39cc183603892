#include "impl/switch/shim/adoption.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "impl/switch/libc_calls.h"
#include "impl/switch/low_mark.h"
#include "impl/switch/shim/descriptors.h"
#include "impl/switch/shim/engine_link.h"
#include "impl/switch/shim/made.h"

namespace esdp::switching {
namespace {

using libc::real;

// What the set is told to watch now. One that has fired once is armed for nothing.
uint32_t EventsNow(const Registration& watched) {
  if ((watched.events & EPOLLONESHOT) == 0) return watched.events;
  char path[64];
  (void)std::snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", watched.set);
  std::FILE* const file = std::fopen(path, "re");
  if (file == nullptr) return watched.events;
  char line[256];
  uint32_t events = watched.events;
  while (std::fgets(line, sizeof(line), file) != nullptr) {
    int number = -1;
    unsigned now = 0;
    if (std::sscanf(line, "tfd: %d events: %x", &number, &now) == 2 && number == watched.number) {
      events = now;
    }
  }
  std::fclose(file);
  return events;
}

// Everything that tells of the file under the number is moved to the new one: out of each set
// first, since the old file lives on and would go on telling.
bool Replace(Connection& connection, int number, int with) {
  const Registrations::Hold hold(connection.registrations, Registrations::Hold::Waits::kYes);
  std::optional<uint32_t> events[Registrations::size()];  // none at all is what some sets are told
  for (size_t i = 0; i < connection.registrations.size(); ++i) {
    const Registration& each = connection.registrations[i];
    if (each.number != number) continue;
    events[i] = EventsNow(each);
    epoll_event none = {};
    if (real.epoll_ctl.get()(each.set, EPOLL_CTL_DEL, number, &none) != 0) events[i].reset();
  }
  const int flags = made.fcntl.get()(number, F_GETFD);
  const int close_on_exec = (flags & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0;
  const bool replaced = made.dup3.get()(with, number, close_on_exec) == number;
  for (size_t i = 0; i < connection.registrations.size(); ++i) {
    Registration& each = connection.registrations[i];
    if (each.number != number) continue;
    if (!events[i].has_value()) {
      each = {};
      continue;
    }
    epoll_event event = {.events = *events[i], .data = {.u64 = each.data}};
    (void)real.epoll_ctl.get()(each.set, EPOLL_CTL_ADD, number, &event);
  }
  return replaced;
}

// Whom signals of the socket go to. False: nobody.
bool CopyOwner(const OptionsSet& set, int from, int to) {
  f_owner_ex owner = {};
  if (!set.Has(OptionsSet::kOwner)) return false;
  if (made.fcntl.get()(from, F_GETOWN_EX, &owner) != 0 || owner.pid == 0) return false;
  (void)made.fcntl.get()(to, F_SETOWN_EX, &owner);
  const int signal = made.fcntl.get()(from, F_GETSIG);
  if (signal > 0) (void)made.fcntl.get()(to, F_SETSIG, signal);
  return true;
}

template <typename Value>
void CopyOption(int from, int name, int to) {
  Value value = {};
  socklen_t bytes = sizeof(value);
  if (real.getsockopt.get()(from, SOL_SOCKET, name, &value, &bytes) == 0) {
    (void)real.setsockopt.get()(to, SOL_SOCKET, name, &value, bytes);
  }
}

// What the program has set that the stream pair keeps by itself.
void CopyOptions(const OptionsSet& set, int from, int flags, int to) {
  const int kept = flags & (O_NONBLOCK | O_ASYNC);
  if (kept != 0) (void)made.fcntl.get()(to, F_SETFL, kept);
  if (set.Has(OptionsSet::kUrgentInLine)) CopyOption<int>(from, SO_OOBINLINE, to);
  if (set.Has(OptionsSet::kReceiveTime)) CopyOption<timeval>(from, SO_RCVTIMEO, to);
  if (set.Has(OptionsSet::kSendTime)) CopyOption<timeval>(from, SO_SNDTIMEO, to);
}

linger LingersOf(const OptionsSet& set, int descriptor) {
  linger lingers = {};
  if (!set.Has(OptionsSet::kLinger)) return lingers;
  socklen_t bytes = sizeof(lingers);
  (void)real.getsockopt.get()(descriptor, SOL_SOCKET, SO_LINGER, &lingers, &bytes);
  return lingers;
}

void OnLast(Connection& connection) {
  if (connection.state == State::kDirect) {
    engine.close_direct(connection.relay, connection.resets_at_close());
  } else if (IsSwitched(connection.state) && connection.resets_at_close() && !connection.foreign) {
    engine.abort(connection.relay);
  }
  CloseOwn(connection.below);
}

}  // namespace

ino_t InodeOf(int descriptor) {
  struct stat about = {};
  return fstat(descriptor, &about) == 0 ? about.st_ino : 0;
}

void FillLocalName(int number, ConnectionNames& names) {
  names.local_bytes = sizeof(Name);
  if (real.getsockname.get()(number, &names.local.any, &names.local_bytes) != 0) {
    names.local_bytes = 0;
  }
}

void FillNames(int number, ConnectionNames& names) {
  FillLocalName(number, names);
  names.peer_bytes = sizeof(Name);
  if (real.getpeername.get()(number, &names.peer.any, &names.peer_bytes) != 0) {
    names.peer_bytes = 0;
  }
}

namespace {

// As the program has set them by now; the engine sets its own.
void FillKeptOptions(int number, Connection& connection) {
  for (size_t i = 0; i < kKeptOptions.size(); ++i) {
    int value = 0;
    socklen_t bytes = sizeof(value);
    if (!connection.options_set.Has(OptionsSet::Kept(i))) continue;
    if (real.getsockopt.get()(number, IPPROTO_TCP, kKeptOptions[i], &value, &bytes) == 0) {
      connection.kept_options[i] = value;
    }
  }
}

}  // namespace

Reason ReasonOf(int error) {
  if (error == EMFILE || error == ENFILE) return Reason::kNoDescriptors;
  const bool forbidden = error == EPERM || error == EACCES || error == ENOSYS;
  return forbidden ? Reason::kSandbox : Reason::kMemory;
}

int Relay(Connection& connection, Begin begin) {
  if (connection.registrations.lost_one()) return ENOMEM;
  const int number = connection.number;
  const int flags = made.fcntl.get()(number, F_GETFL);
  if (begin != Begin::kConnects) FillNames(number, connection.names);  // else just now
  FillKeptOptions(number, connection);
  const int below = DuplicateHigh(number);
  if (below < 0) return errno;
  if (connection.options_set.Has(OptionsSet::kLowMark)) libc::SetLowMark(below, 1);
  connection.waits.Decide();
  const RelayRequest request = {.number = number,
                                .descriptor = below,
                                .begin = begin,
                                .verdict = connection.rule->verdict,
                                .is_heard = connection.is_heard,
                                .options = connection.rule->options,
                                .names = connection.names};
  RelayMade relay;
  if (const int error = engine.relay(request, relay); error != 0) {
    connection.waits.Undo();
    (void)made.fcntl.get()(number, F_SETFL, flags);
    CloseOwn(below);
    return error;
  }
  const OptionsSet& set = connection.options_set;
  CopyOptions(set, below, flags, relay.program_end);
  const bool signals = CopyOwner(set, below, relay.program_end);
  connection.lingers = LingersOf(set, below);
  connection.inode = InodeOf(relay.program_end);
  connection.below = below;
  connection.relay = relay.id;
  bool all = true;
  table.ForEachNumber(connection,
                      [&](int each) { all = Replace(connection, each, relay.program_end) && all; });
  connection.awaits_first = begin == Begin::kAccepts;
  const bool direct =
      begin != Begin::kUnknown && !signals && connection.rule->options.mode == Mode::kDirect;
  connection.non_blocking = (flags & O_NONBLOCK) != 0;
  connection.state.store(direct ? State::kSettingUp : State::kRelayed, std::memory_order_release);
  CloseOwn(relay.program_end);
  return all ? 0 : EBADF;
}

int RelayInstead(Connection& connection) {
  if (connection.state == State::kSettingUp) connection.state = State::kRelayed;
  if (connection.state != State::kDirect) return 0;
  const int number = connection.number;
  int fresh = -1;
  if (const int error = engine.relay_instead(connection.relay, connection.names, fresh); error != 0)
    return error;
  if (fresh >= 0) {
    CopyOptions(connection.options_set, number, made.fcntl.get()(number, F_GETFL), fresh);
    (void)CopyOwner(connection.options_set, number, fresh);
    connection.inode = InodeOf(fresh);
    table.ForEachNumber(connection, [&](int each) { (void)Replace(connection, each, fresh); });
    CloseOwn(fresh);
  }
  if (connection.output_shut) (void)real.shutdown.get()(number, SHUT_WR);
  if (connection.input_shut) (void)real.shutdown.get()(number, SHUT_RD);
  connection.state.store(State::kRelayed, std::memory_order_release);
  return 0;
}

void RelayAllInstead() {
  table.ForEach([](Connection& each) { (void)RelayInstead(each); });
}

void NoteShared() {
  table.ForEach([](Connection& each) {
    each.shared = true;
    each.options_set.NoteAll();
  });
}

void MakePlain(Connection& connection, Reason reason) {
  PlainNote note = {
      .number = connection.number,
      .role = connection.rule != nullptr ? connection.rule->role : Role::kClient,
      .verdict = connection.rule != nullptr ? connection.rule->verdict : Verdict::kTcp,
      .reason = reason};
  if (reason != Reason::kNone && connection.rule != nullptr) {
    FillNames(connection.number, note.names);
    engine.note(note);
  }
  table.ForEachNumber(connection, [](int each) { Forget(each); });
}

void Forget(int number) { table.Remove(number, OnLast); }

Connection* FindRelayed(int number) {
  Connection* const connection = table.Find(number);
  if (connection == nullptr || !IsSwitched(connection->state)) return nullptr;
  if (connection->inode == InodeOf(number)) return connection;
  Forget(number);
  return nullptr;
}

}  // namespace esdp::switching
