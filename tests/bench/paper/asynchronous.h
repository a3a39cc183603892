#ifndef ESDP_TESTS_BENCH_PAPER_ASYNCHRONOUS_H_
#define ESDP_TESTS_BENCH_PAPER_ASYNCHRONOUS_H_

#include <cstdint>
#include <vector>

#include "tests/bench/paper/pair.h"

namespace esdp::paper {

// How what an asynchronous caller sends gets there.
enum class Means : uint8_t {
  kCopied,    // in messages: the receiver copies it out of them
  kRead,      // the receiver reads it: adverts of the sender, several of them at once
  kWritten,   // the sender writes it into the receives that wait
  kAdaptive,  // as the library learns, read or copied
};

// What the caller does, beside which means.
struct Habit {
  size_t outstanding = 1;
  // It polls for so long before it sleeps; the library's own WaitMode::kAdaptive does for 50 us.
  double spin_us = 0;
  // It does something else for so long before each send: then the peer's receive is there first.
  double pause_us = 0;
};

ContextOptions ContextOptionsOf(Means means);
SocketOptions SocketOptionsOf(const fabric::sim::testbed::Parameters& parameters, Means means);

// A program of the ES-API: one thread that has registered its memory once, keeps operations of
// `bytes` each outstanding on its socket, and moves the protocol itself. It polls as long as there
// is something, then it waits for an interrupt.
//
//   Owns:     the memory, registered before anything counts.
//   Threads:  one.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   throws.
class AsynchronousCaller {
 public:
  AsynchronousCaller(Pair::Side& side, bool sends, const Habit& habit, uint64_t bytes);

  void Start();
  // How long its operations took from the post to the event, since Begin.
  void Begin() { taken_ = {}, ended_ = 0; }
  double MicrosecondsEach() const;

 private:
  Program Run();
  void Post();
  // How many have ended.
  size_t Collect();
  void Refill();
  // What the library has copied since it was last asked.
  fabric::sim::testbed::Work Copies();

  Pair::Side& side_;
  const bool sends_;
  const Habit habit_;
  const uint64_t bytes_;
  Thread& thread_;
  std::vector<std::byte> memory_;
  Region region_;
  uint64_t posted_ = 0;
  uint64_t outstanding_ = 0;
  Time posted_at_{};
  Duration taken_{};
  uint64_t ended_ = 0;
  uint64_t copied_ = 0;
};

}  // namespace esdp::paper

#endif  // ESDP_TESTS_BENCH_PAPER_ASYNCHRONOUS_H_
