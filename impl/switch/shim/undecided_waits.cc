#include "impl/switch/shim/undecided_waits.h"

#include "impl/switch/libc_calls.h"
#include "impl/switch/monotonic.h"
#include "impl/switch/shim/switch_taker.h"
#include "impl/switch/shim/table.h"

namespace esdp::switching {
namespace {

constexpr int kUseShift = 32;
constexpr int64_t kWaitsEndWithin = 1000;  // milliseconds

bool IsUndecided(const Connection& connection) {
  const State state = connection.state;
  return state == State::kAccepted || state == State::kSpoke;
}

}  // namespace

uint64_t BeginUndecidedWait(int number) {
  Connection* const connection = table.Find(number);
  if (connection == nullptr || !IsUndecided(*connection) || !IsThisProcess()) return 0;
  const std::optional<uint32_t> use = connection->waits.Begin();
  if (use.has_value()) return uint64_t{*use} << kUseShift | table.PlaceOf(*connection);
  const KeptErrno kept;
  const TableLock until_decided;
  return 0;
}

void LetUndecidedWaitsEnd(int number) {
  const Connection* const connection = table.Find(number);
  const int64_t until = libc::MonotonicMilliseconds() + kWaitsEndWithin;
  while (connection != nullptr && connection->waits.any() && table.Find(number) == connection &&
         libc::MonotonicMilliseconds() < until) {
    (void)libc::real.poll.get()(nullptr, 0, 1);
  }
}

void EndUndecidedWait(uint64_t wait) {
  if (wait == 0) return;
  table.At(static_cast<uint32_t>(wait)).waits.End(static_cast<uint32_t>(wait >> kUseShift));
}

libc::Taker::Wait SwitchTaker::WaitsForInput(int fd) noexcept { return BeginUndecidedWait(fd); }

void SwitchTaker::HasWaited(Wait wait) noexcept { EndUndecidedWait(wait); }

}  // namespace esdp::switching
