#include "impl/switch/shim/decisions.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <span>
#include <utility>

#include "impl/switch/libc_calls.h"
#include "impl/switch/low_mark.h"
#include "impl/switch/monotonic.h"
#include "impl/switch/mpa_request.h"
#include "impl/switch/shim/adoption.h"
#include "impl/switch/shim/engine_link.h"
#include "impl/switch/shim/made.h"
#include "impl/switch/shim/program_rules.h"
#include "impl/switch/shim/switch_taker.h"
#include "impl/switch/shim/table.h"
#include "impl/switch/shim/undecided_waits.h"
#include "impl/switch/taker.h"

namespace esdp::switching {
namespace {

using libc::real;
using Bytes = std::array<unsigned char, libc::kMpaRequestMax>;

Connection* FindUndecided(int number) {
  Connection* const connection = table.Find(number);
  if (connection == nullptr) return nullptr;
  const State state = connection->state;
  return state == State::kAccepted || state == State::kSpoke ? connection : nullptr;
}

// `plain` bytes came, or the end.
void FoundPlain(int number, Reason reason) {
  const TableLock lock;
  Connection* const connection = FindUndecided(number);
  if (connection == nullptr) return;
  libc::SetLowMark(number, 1);
  if (connection->rule->verdict == Verdict::kSdp && reason != Reason::kNone) {
    // Nothing of it is seen by the program but the end.
    Bytes taken;
    (void)real.shutdown.get()(number, SHUT_RDWR);
    while (real.recv.get()(number, taken.data(), taken.size(), MSG_DONTWAIT) > 0) continue;
  }
  MakePlain(*connection, reason);
}

// A whole request is there, and nothing of ours before it.
int TakeRequest(Connection& connection) {
  const int error = Relay(connection, Begin::kAccepts);
  if (error == 0) return 0;
  (void)real.shutdown.get()(connection.number, SHUT_RDWR);
  MakePlain(connection, ReasonOf(error));
  return ECONNRESET;
}

// A whole request is there. Behind our own bytes it comes too late, and is taken out of the input.
int FoundRequest(int number, const Bytes& bytes) {
  LetUndecidedWaitsEnd(number);
  const TableLock lock;
  Connection* const connection = FindUndecided(number);
  if (connection == nullptr) return 0;
  if (connection->state == State::kSpoke) {
    Bytes taken;
    (void)real.recv.get()(number, taken.data(), libc::MpaRequestBytes(bytes.data()), MSG_DONTWAIT);
    libc::SetLowMark(number, 1);
    MakePlain(*connection, Reason::kWaitRanOut);
    return 0;
  }
  return TakeRequest(*connection);
}

// How long the rest of a request may still take.
int PartLeft(int number) {
  const TableLock lock;
  Connection* const connection = FindUndecided(number);
  if (connection == nullptr) return 0;
  const int64_t now = libc::MonotonicMilliseconds();
  if (connection->part_until == 0) {
    connection->part_until = now + libc::kMpaRestWithinMs;
    engine.later(libc::kMpaRestWithinMs, static_cast<uint64_t>(number));
  }
  return static_cast<int>(std::max<int64_t>(connection->part_until - now, 0));
}

// False: it has been decided meanwhile, and what is under the number has a mark of its own.
bool WakeFor(int number, size_t bytes) {
  const TableLock lock;
  Connection* const connection = FindUndecided(number);
  if (connection == nullptr) return false;
  connection->options_set.NoteLowMark();
  libc::SetLowMark(number, bytes);
  return true;
}

bool IsNonBlocking(int number) { return (made.fcntl.get()(number, F_GETFL) & O_NONBLOCK) != 0; }

// False: it cannot wait. A program that locks itself up may have no descriptor left, by its limit.
bool Wait(int number, int64_t milliseconds) {
  pollfd one = {.fd = number, .events = POLLIN | POLLRDHUP, .revents = 0};
  const UndecidedWait wait(number);
  return real.poll.get()(&one, 1, static_cast<int>(milliseconds)) >= 0 || errno == EINTR;
}

bool HasEnded(int number) {
  pollfd one = {.fd = number, .events = POLLRDHUP, .revents = 0};
  return real.poll.get()(&one, 1, 0) == 1;
}

// 0: look again. kGoOn: it is decided.
constexpr int kGoOn = -1;
int WaitForRest(int number, size_t need, bool dont_wait) {
  if (!WakeFor(number, need)) return kGoOn;
  const int left = PartLeft(number);
  const bool waits = !dont_wait && !IsNonBlocking(number);
  if (left == 0 || HasEnded(number) || (waits && !Wait(number, left))) {
    FoundPlain(number, Reason::kAnsweredPlain);
    return kGoOn;
  }
  return waits ? 0 : EAGAIN;
}

// What is there first.
ssize_t Look(int number, Bytes& bytes, bool dont_wait) {
  const ssize_t got = real.recv.get()(number, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
  if (got >= 0 || errno != EAGAIN || dont_wait || IsNonBlocking(number)) return got;
  const UndecidedWait wait(number);
  return real.recv.get()(number, bytes.data(), bytes.size(), MSG_PEEK);
}

}  // namespace

int DecideBeforeRead(int number, bool dont_wait) {
  const KeptErrno kept;
  for (;;) {
    Bytes bytes;
    const ssize_t got = Look(number, bytes, dont_wait);
    if (got < 0) {
      // The call may have begun with TCP, which has been somebody else's since, who does not wait.
      const int error = errno;
      const TableLock lock;
      if (error == ENOTSOCK) Forget(number);
      return FindUndecided(number) == nullptr ? 0 : error;
    }
    const auto count = static_cast<size_t>(got);
    const size_t need = count == 0 ? libc::kMpaNone : libc::JudgeMpaRequest(bytes.data(), count);
    if (need == libc::kMpaWhole) return FoundRequest(number, bytes);
    if (need == libc::kMpaNone) {
      FoundPlain(number, count == 0 ? Reason::kNone : Reason::kAnsweredPlain);
      return 0;
    }
    const int result = WaitForRest(number, need, dont_wait);
    if (result == kGoOn) return 0;
    if (result != 0) return result;
  }
}

namespace {

// A program may be both ends in one thread, which would wait for a request that it has yet to send.
void AskWhereConnected() {
  std::array<int, 16> numbers{};
  size_t count = 0;
  {
    const TableLock lock;
    table.ForEach([&](const Connection& each) {
      if (each.state == State::kConnecting && count < numbers.size()) {
        numbers[count++] = each.number;
      }
    });
  }
  for (const int number : std::span(numbers).first(count)) (void)DecideConnected(number);
}

// Its client is a connection of this process that asks, however long that takes on a busy machine.
bool IsOfOurs(int number) {
  const TableLock lock;
  ConnectionNames names;
  Endpoint peer;
  FillNames(number, names);
  if (!ToEndpoint(names.peer, names.peer_bytes, peer)) return false;
  bool ours = false;
  table.ForEach([&](const Connection& each) {
    Endpoint local;
    ours = ours ||
           (IsSwitched(each.state) && ToEndpoint(each.names.local, each.names.local_bytes, local) &&
            local.address == peer.address && local.port == peer.port);
  });
  return ours;
}

// Nobody has asked for SDP within the time that the rule gives.
int SpeakFirst(int number) {
  {
    const TableLock lock;
    Connection* const connection = FindUndecided(number);
    if (connection == nullptr) return 0;
    libc::SetLowMark(number, 1);
    if (connection->rule->verdict != Verdict::kSdp) {
      connection->state = State::kSpoke;
      return 0;
    }
  }
  FoundPlain(number, Reason::kWaitRanOut);
  return ECONNRESET;
}

}  // namespace

int DecideBeforeWrite(int number) {
  const KeptErrno kept;
  int64_t until = 0;
  {
    const TableLock lock;
    const Connection* const connection = FindUndecided(number);
    if (connection == nullptr || connection->state == State::kSpoke) return 0;
    const bool takes_plain = connection->rule->verdict != Verdict::kSdp;
    until = libc::MonotonicMilliseconds() +
            (takes_plain ? connection->rule->options.wait_ms : kRequestWithinMs);
  }
  bool asks = true;
  for (;;) {
    Bytes bytes;
    const ssize_t got =
        real.recv.get()(number, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
    const auto count = static_cast<size_t>(std::max<ssize_t>(got, 0));
    const size_t need = count == 0 ? 1 : libc::JudgeMpaRequest(bytes.data(), count);
    if (need == libc::kMpaWhole) return FoundRequest(number, bytes);
    if (got == 0 || (got < 0 && errno != EAGAIN) || need == libc::kMpaNone) {
      FoundPlain(number, count > 0 ? Reason::kAnsweredPlain : Reason::kNone);
      return 0;
    }
    if (std::exchange(asks, false)) {
      AskWhereConnected();
      if (IsOfOurs(number)) until = libc::MonotonicMilliseconds() + kRequestWithinMs;
      continue;
    }
    const int64_t left = until - libc::MonotonicMilliseconds();
    if (left <= 0 || HasEnded(number) || !WakeFor(number, need) || !Wait(number, left)) break;
  }
  return SpeakFirst(number);
}

void DecideBeforeClose(int number) {
  const KeptErrno kept;
  const TableLock lock;
  Connection* const connection = FindUndecided(number);
  if (connection == nullptr || connection->state != State::kAccepted) return;
  if (connection->shared || connection->numbers > 1 || connection->part_until != 0) return;
  Bytes bytes;
  const ssize_t got = real.recv.get()(number, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
  if (got == 0 || (got < 0 && errno != EAGAIN)) return;
  const auto count = static_cast<size_t>(std::max<ssize_t>(got, 0));
  const size_t need = count == 0 ? 1 : libc::JudgeMpaRequest(bytes.data(), count);
  if (need == libc::kMpaNone) return;
  (void)Relay(*connection, need == libc::kMpaWhole ? Begin::kAccepts : Begin::kUnknown);
}

int DecideUnseen(int number) {
  const KeptErrno kept;
  if (const int error = DecideConnected(number); error != 0) return error;
  const TableLock lock;
  if (Connection* const switched = FindRelayed(number)) return RelayInstead(*switched);
  Connection* const connection = FindUndecided(number);
  if (connection == nullptr) return 0;
  if (connection->state == State::kSpoke || Relay(*connection, Begin::kUnknown) != 0) {
    MakePlain(*connection, Reason::kCopyPassedOn);
  }
  return 0;
}

void RelayForSignals(int number) {
  if (!libc::taken_numbers.Has(number) || !IsThisProcess()) return;
  const KeptErrno kept;
  const TableLock lock;
  if (Connection* const known = table.Find(number)) known->options_set.NoteOwner();
  if (Connection* const switched = FindRelayed(number)) (void)RelayInstead(*switched);
}

namespace {

constexpr uint64_t kAnswers = ~uint64_t{0};  // no number
constexpr unsigned kAnswersEach = 1000;      // milliseconds
constexpr int64_t kAnswersFor = 10'000;      // since accept: a peer asks as soon as it is connected

constinit std::atomic<bool> answers_soon{false}, has_forked{false};

bool HasWholeRequest(int number) {
  Bytes bytes;
  const ssize_t got = real.recv.get()(number, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
  if (got <= 0) return false;
  return libc::JudgeMpaRequest(bytes.data(), static_cast<size_t>(got)) == libc::kMpaWhole;
}

// What another process has too is left to whoever reads it first.
void Answer() {
  const KeptErrno kept;
  const TableLock lock;
  answers_soon = false;
  const int64_t now = libc::MonotonicMilliseconds();
  bool more = false;
  table.ForEach([&](Connection& each) {
    if (each.state != State::kAccepted || each.shared) return;
    if (now - each.accepted_at > kAnswersFor) return;
    // Who waits finds it.
    if (!each.waits.any() && HasWholeRequest(each.number)) {
      (void)TakeRequest(each);
    } else {
      more = true;
    }
  });
  if (more && !answers_soon.exchange(true)) engine.later(kAnswersEach, kAnswers);
}

// The rest of a request has not come in time.
void GiveUpPart(int number) {
  bool late = false;
  {
    const TableLock lock;
    const Connection* const connection = FindUndecided(number);
    late = connection != nullptr && connection->part_until != 0 &&
           connection->part_until <= libc::MonotonicMilliseconds();
  }
  if (late) FoundPlain(number, Reason::kAnsweredPlain);
}

}  // namespace

void AnswerSoon(Connection& connection) {
  if (has_forked || !engine.runs()) return;
  connection.accepted_at = libc::MonotonicMilliseconds();
  if (!answers_soon.exchange(true)) engine.later(kAnswersEach, kAnswers);
}

void NoteFork(bool in_child) {
  has_forked = !in_child;
  if (in_child) answers_soon = false;
}

void OnDue(uint64_t what) {
  if (what == kAnswers) return Answer();
  GiveUpPart(static_cast<int>(what));
}

}  // namespace esdp::switching
