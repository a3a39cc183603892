#ifndef ESDP_IMPL_SOCKETS_CONTEXT_LOG_LIMIT_H_
#define ESDP_IMPL_SOCKETS_CONTEXT_LOG_LIMIT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "impl/base/time.h"

namespace esdp::sockets {

// Between those who log and the application's sink. Lines are alike when they differ in numbers and
// addresses alone: of each kind a burst goes at once, then one line each second, which tells how
// many like it were left out. So nobody floods the log, and no kind of line hides another.
//
//   Owns:     of each kind that is left out the last line.
//   Threads:  any; the sink is called on the caller's.
//   Blocks:   never, unless the sink does.
//   Units:    instants of the clock that it is given.
//   Errors:   a line for which there is no memory goes to the sink.
class LogLimit {
 public:
  using Sink = std::function<void(std::string_view)>;
  // Kinds that are told apart; the lines of more share one.
  static constexpr size_t kKindsMax = 64;

  // `burst` 0: all lines go. Until Start all lines go.
  LogLimit(Sink sink, uint32_t burst) : sink_(std::move(sink)), burst_(burst) {}

  // `ring` is called without a lock, and asks for a call of TellLeftOut at that time.
  void Start(std::function<Time()> now, std::function<void(Time)> ring);
  void Log(std::string_view line);
  void TellLeftOut();
  // The clock stands still from now on, and nothing rings.
  void Freeze();
  // Tells what was left out. From now on all lines go.
  void Stop();
  bool has_sink() const { return sink_ != nullptr; }

 private:
  struct Kind {
    uint32_t room = 0;  // lines that may go at once
    Time filled_at{};
    uint64_t left_out = 0;
    std::string last;
  };

  // Under the lock.
  bool MayGo(std::string_view line, Time now);
  Kind& KindOf(std::string_view line, Time now);
  void Fill(Kind& kind, Time now) const;

  const Sink sink_;
  const uint32_t burst_;
  std::mutex mutex_;
  std::unordered_map<std::string, Kind> kinds_;
  std::function<Time()> now_;
  std::function<void(Time)> ring_;
  bool is_awaited_ = false;  // TellLeftOut
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_CONTEXT_LOG_LIMIT_H_
