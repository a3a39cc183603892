#ifndef ESDP_IMPL_FABRIC_SIM_FAULTS_H_
#define ESDP_IMPL_FABRIC_SIM_FAULTS_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "impl/base/time.h"

namespace esdp::fabric::sim {

enum class FaultKind : uint8_t {
  kDelay,        // a frame travels longer; those of other queue pairs overtake it
  kLateNews,     // the begin or the end of a connection is heard of late
  kNotReady,     // InfiniBand family: a message is told to come again later
  kSleep,        // a fabric that has something to poll is not polled for a while
  kNoRegion,     // Register fails
  kNoWindow,     // Bind fails
  kNoQueuePair,  // CreateQueuePair fails
  kReset,        // a connection breaks, and both ends are told
  kSilence,      // nothing gets through any more: each end finds out by its keep-alive
  kMemoryLimit,  // more memory is registered than there may be
  kHostile,      // an observer has changed what a peer sent
  kForged,       // an observer has made a peer read or write with a key it was not given
  kDeath,        // a process vanished with its fabric, without a word
};
inline constexpr size_t kFaultKinds = 13;
const char* ToString(FaultKind kind);

// What goes wrong in a world, by chance. As it is made, nothing does. Chances are out of a million
// opportunities: one for each frame, call, connection and so on.
struct Faults {
  static constexpr uint32_t kAlways = 1'000'000;

  uint32_t delay = 0;
  Duration delay_max = std::chrono::milliseconds(1);
  // What real connection managers lose they send again: it comes up to news_delay_max late. Data
  // that overtakes the news of a connection's begin brings the news itself.
  uint32_t late_news = 0;
  Duration news_delay_max = std::chrono::seconds(2);
  uint32_t not_ready = 0;
  Duration not_ready_max = std::chrono::microseconds(500);
  uint32_t sleep = 0;
  Duration sleep_max = std::chrono::milliseconds(2);
  uint32_t no_region = 0;
  uint32_t no_window = 0;
  uint32_t no_queue_pair = 0;
  // Of connections, within break_within of their begin. Silence is noticed between one and four
  // times the queue pair's keep_alive_idle later, 15 s unless told.
  uint32_t reset = 0;
  uint32_t silence = 0;
  Duration break_within = std::chrono::milliseconds(2);
  // Bytes that each fabric lets be registered at a time; 0: any number.
  uint64_t registered_bytes_max = 0;
};

// How often what has happened.
using FaultCounts = std::array<uint64_t, kFaultKinds>;

}  // namespace esdp::fabric::sim

#endif  // ESDP_IMPL_FABRIC_SIM_FAULTS_H_
