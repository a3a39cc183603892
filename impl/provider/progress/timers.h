#ifndef ESDP_IMPL_PROVIDER_PROGRESS_TIMERS_H_
#define ESDP_IMPL_PROVIDER_PROGRESS_TIMERS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <variant>

#include "impl/base/time.h"
#include "impl/base/timer_queue.h"
#include "impl/provider/types.h"
#include "impl/sdp/interface/ids.h"

namespace esdp::provider {

// Everything in a shard that waits for a time: the timers of the cores, the deadlines of
// operations and the alarms of the front end.
//
//   Owns:     its entries.
//   Threads:  the holder of the shard lock.
//   Blocks:   never.
//   Units:    instants on the shard's clock.
//   Errors:   –
class Timers {
 public:
  struct CoreTimer {
    ConnectionId connection = ConnectionId::kNone;
    sdp::Timer timer{};
  };
  struct Alarm {
    uint64_t key = 0;
  };
  using Due = std::variant<CoreTimer, sdp::OperationId, Alarm>;

  // Room for the deadlines of so many connections.
  void Reserve(size_t connections) {
    for (TimerQueue& queue : core_) queue.Reserve(connections);
  }
  void ShrinkTo(size_t connections) {
    for (TimerQueue& queue : core_) queue.ShrinkTo(connections);
  }
  // Room for the deadlines and the alarms of so many operations.
  void ReserveOperations(size_t operations) {
    deadlines_.Reserve(operations);
    alarms_.Reserve(operations);
  }
  void Set(ConnectionId connection, sdp::Timer timer, Time at) {
    earliest_ = std::min(earliest_, at);
    Queue(timer).Set(static_cast<uint64_t>(connection), at);
  }
  void Clear(ConnectionId connection, sdp::Timer timer) {
    Queue(timer).Cancel(static_cast<uint64_t>(connection));
  }
  void ClearAll(ConnectionId connection) {
    for (TimerQueue& queue : core_) queue.Cancel(static_cast<uint64_t>(connection));
  }
  void SetDeadline(sdp::OperationId operation, Time at) {
    earliest_ = std::min(earliest_, at);
    deadlines_.Set(static_cast<uint64_t>(operation), at);
  }
  void ClearDeadline(sdp::OperationId operation) {
    if (!deadlines_.empty()) deadlines_.Cancel(static_cast<uint64_t>(operation));
  }
  void SetAlarm(uint64_t key, Time at) {
    earliest_ = std::min(earliest_, at);
    if (at == kTimeInfinite) {
      alarms_.Cancel(key);
    } else {
      alarms_.Set(key, at);
    }
  }

  Time Next() const {
    Time next = std::min(deadlines_.NextDeadline(), alarms_.NextDeadline());
    for (const TimerQueue& queue : core_) next = std::min(next, queue.NextDeadline());
    return next;
  }

  // False where PopDue would find nothing; cheaper than to ask it.
  bool MayBeDue(Time now) const { return earliest_ <= now; }

  std::optional<Due> PopDue(Time now) {
    for (size_t i = 0; i < core_.size(); ++i) {
      if (const auto due = core_[i].PopDue(now)) {
        return CoreTimer{ConnectionId{due->key}, static_cast<sdp::Timer>(i)};
      }
    }
    if (const auto due = deadlines_.PopDue(now)) {
      return sdp::OperationId{static_cast<uint32_t>(due->key)};
    }
    if (const auto due = alarms_.PopDue(now)) return Alarm{due->key};
    earliest_ = Next();
    return std::nullopt;
  }

 private:
  TimerQueue& Queue(sdp::Timer timer) { return core_[static_cast<size_t>(timer)]; }

  std::array<TimerQueue, sdp::kTimerCount> core_;
  TimerQueue deadlines_;
  TimerQueue alarms_;              // the front end's own
  Time earliest_ = kTimeInfinite;  // no deadline is before this
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_PROGRESS_TIMERS_H_
