#ifndef ESDP_TESTS_BENCH_PAPER_SYNCHRONOUS_H_
#define ESDP_TESTS_BENCH_PAPER_SYNCHRONOUS_H_

#include <cstdint>
#include <vector>

#include "impl/fabric/sim/testbed/parameters.h"
#include "tests/bench/paper/pair.h"
#include "tests/bench/paper/progress_of.h"

namespace esdp::paper {

// How the benchmarks set the threshold: to infinity, to 0, or as the library comes, which for what
// is shorter than that is to be as good as infinity.
enum class Mode : uint8_t { kBuffered, kZeroCopy, kByThreshold };

SocketOptions SocketOptionsOf(const fabric::sim::testbed::Parameters& parameters, Mode mode);

// A thread that calls the blocking send() or recv() of a socket in the kernel again and again, with
// one buffer of `bytes`, as iperf does.
//
// A call has the lock of its socket but while it waits. Buffered: send() copies into private buffers,
// and waits where none is free; recv() returns what is there, copied out of them. Zero-copy: each call
// pins and maps its buffer, waits until the peer has read it or it has been read into, and unmaps and
// unpins it.
//
//   Owns:     the memory.
//   Threads:  one.
//   Blocks:   never.
//   Units:    bytes, virtual time.
//   Errors:   throws.
class Caller {
 public:
  // `sharers` of its kind share the caches of the host.
  Caller(Pair::Side& side, Mode mode, uint64_t bytes, size_t sharers);

  void SendForever() {
    thread_.Start(
        Forever(mode_ == Mode::kBuffered ? &Caller::SendBuffered : &Caller::SendZeroCopy));
  }
  void ReceiveForever() {
    thread_.Start(
        Forever(mode_ == Mode::kBuffered ? &Caller::ReceiveBuffered : &Caller::ReceiveZeroCopy));
  }
  // A request and its answer after the other, both of all bytes, as netperf's TCP_RR.
  void AskForever() { thread_.Start(PingPong(true)); }
  void AnswerForever() { thread_.Start(PingPong(false)); }
  // Of a ping-pong: each message that came.
  ProgressOf& answers() { return answers_; }

 private:
  struct Part {
    uint64_t offset;
    uint64_t bytes;
  };

  Program Forever(Program (Caller::*call)());
  Program PingPong(bool asks);
  // One call of send() or recv() each.
  Program SendBuffered();
  Program ReceiveBuffered();
  Program SendZeroCopy();
  Program ReceiveZeroCopy();
  // The system call, and the lock of the socket.
  Program Enter();
  // What has come while it was locked is polled here.
  Program Leave();
  // Until something has come. What interrupts then is the tasklet's.
  Program Wait();

  const fabric::sim::testbed::Parameters& parameters() const { return side_.host->parameters(); }
  Socket& socket() { return side_.socket; }
  OpArgs Args() { return {.queue = side_.queue, .cookie = cookie_}; }
  // Those of the private buffers that the peer has by now.
  void FreeSlots();
  Part NextPart(uint64_t done) const;
  void PostPart(const Part& part);
  void PostReceive();
  // The whole buffer, in regions that are as long as one may be.
  std::vector<Region> Pin();
  static std::vector<Slice> SlicesOf(const std::vector<Region>& regions);
  static void Unpin(std::vector<Region>& regions);
  fabric::sim::testbed::Work CopyIn(const Part& part) const;
  // What is behind the copy of the bytes that a recv() got.
  fabric::sim::testbed::Work CopyOut(uint64_t bytes) const;

  Pair::Side& side_;
  const uint64_t cookie_;
  Thread& thread_;
  const Mode mode_;
  const uint64_t buffer_bytes_;
  const double missing_;  // of the application's buffer in caches
  std::vector<std::byte> memory_;
  std::vector<std::byte> slots_;  // the private buffers of a sender
  Region slots_region_;
  Region region_;  // of memory_, where recv() copies there
  uint64_t slots_free_ = 0;
  uint64_t next_slot_ = 0;
  uint64_t got_ = 0;  // by recv()
  ProgressOf answers_;
};

}  // namespace esdp::paper

#endif  // ESDP_TESTS_BENCH_PAPER_SYNCHRONOUS_H_
