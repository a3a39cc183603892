#ifndef ESDP_TESTS_BENCH_PAPER_PAIR_H_
#define ESDP_TESTS_BENCH_PAPER_PAIR_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "esdp/context.h"
#include "impl/fabric/sim/testbed/host.h"
#include "impl/fabric/sim/world.h"
#include "tools/testbed/thread.h"

namespace esdp::paper {

using esdp::testbed::Program;
using esdp::testbed::Thread;

// Where the protocol lives.
enum class Stack : uint8_t {
  kKernel,   // of the operating system, for threads that call it
  kProcess,  // of the application, for its own thread
};

// Two hosts of a test-bed and connections between them, each with completion queues, and so with
// Contexts, of its own: the library itself on a simulated fabric, and what it takes counted.
//
//   Owns:     the world and all that is in it.
//   Threads:  one.
//   Blocks:   never; virtual time passes in RunUntil.
//   Units:    virtual time.
//   Errors:   what should not happen throws std::runtime_error.
class Pair {
 public:
  // One end of a connection.
  struct Side {
    std::shared_ptr<fabric::sim::testbed::Host> host;
    // In this order: threads outlive what may still wake them.
    std::vector<std::unique_ptr<Thread>> threads;
    Context context;
    EventQueue queue;
    Socket socket;

    // Takes the events that are there to the threads that they are for: the cookie says which.
    void HandOut();
    Thread& AddThread();
  };

  Pair(const fabric::sim::testbed::Parameters& parameters, Stack stack,
       const ContextOptions& context, const SocketOptions& socket, size_t connections);

  ~Pair();

  Side& client(size_t connection = 0) { return sides_[0].at(connection); }
  Side& server(size_t connection = 0) { return sides_[1].at(connection); }
  size_t connections() const { return sides_[0].size(); }
  Time Now() const { return world_->Now(); }
  // Both hosts' processors, the average of the two.
  Duration Busy();
  // What the protocol has taken of them.
  Duration Charged();
  void RunUntil(Time time);

 private:
  void Open(Side& side, const std::shared_ptr<fabric::sim::testbed::Hardware>& hardware,
            const ContextOptions& options);
  void Connect(Side& client, Side& server, const SocketOptions& options);
  void Await(const std::function<bool()>& done);

  std::shared_ptr<fabric::sim::World> world_;
  // Of each host, which outlives its ends of connections: what it still has to do may run then.
  std::shared_ptr<fabric::sim::testbed::Hardware> hardware_[2];
  std::deque<Side> sides_[2];
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
