#ifndef ESDP_TESTS_BENCH_PAPER_PAIR_H_
#define ESDP_TESTS_BENCH_PAPER_PAIR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "esdp/context.h"
#include "impl/fabric/sim/testbed/host.h"
#include "impl/fabric/sim/world.h"
#include "tests/bench/paper/thread.h"

namespace esdp::paper {

// Where the protocol lives.
enum class Stack : uint8_t {
  kKernel,   // of the operating system, for threads that call it
  kProcess,  // of the application, for its own thread
};

// Two hosts of a test-bed, a Context on each and connections between them: the library itself on a
// simulated fabric, and what it takes counted.
//
//   Owns:     the world and all that is in it.
//   Threads:  one.
//   Blocks:   never; virtual time passes in RunUntil.
//   Units:    virtual time.
//   Errors:   what should not happen throws std::runtime_error.
class Pair {
 public:
  struct Side {
    std::shared_ptr<fabric::sim::testbed::Host> host;
    // In this order: threads outlive what may still wake them.
    std::vector<std::unique_ptr<Thread>> threads;
    Context context;
    EventQueue queue;
    std::vector<Socket> sockets;

    // Takes the events that are there to the threads that they are for: the cookie says which.
    void HandOut();
    Thread& AddThread();
  };

  Pair(const fabric::sim::testbed::Parameters& parameters, Stack stack,
       const ContextOptions& context, const SocketOptions& socket, size_t connections);

  ~Pair();

  Side& client() { return sides_[0]; }
  Side& server() { return sides_[1]; }
  Time Now() const { return world_->Now(); }
  // Both hosts' processors, the average of the two.
  Duration Busy();
  void RunUntil(Time time);

 private:
  void Open(Side& side, const fabric::sim::testbed::Parameters& parameters,
            const ContextOptions& options);
  void Connect(const SocketOptions& options, size_t connections);
  void Await(const std::function<bool()>& done);

  std::shared_ptr<fabric::sim::World> world_;
  Side sides_[2];
};

// Of a Status or StatusOr that has to be OK.
void Require(const absl::Status& status);
template <typename T>
T Require(absl::StatusOr<T> value) {
  Require(value.status());
  return *std::move(value);
}

}  // namespace esdp::paper

#endif  // ESDP_TESTS_BENCH_PAPER_PAIR_H_
