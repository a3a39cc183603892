#ifndef ESDP_TOOLS_TESTBED_SIMULATION_H_
#define ESDP_TOOLS_TESTBED_SIMULATION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "esdp/context.h"

namespace esdp::testbed {

// A program of one thread, as a Simulation runs it: whenever it has the processor it does what there
// is to do. What the library does meanwhile takes the simulated host's time; its own code takes none.
class Application {
 public:
  virtual ~Application() = default;
  // Moves the protocol, takes events and posts what follows. Returns how many events it took.
  virtual absl::StatusOr<size_t> Turn() = 0;
  virtual bool ended() const = 0;
  // What the library has copied for it so far, and how much memory it sends from and receives into
  // in turn: that lies in caches or does not.
  virtual uint64_t copied_bytes() const = 0;
  virtual uint64_t memory_bytes() const = 0;
};

// The two hosts of a test-bed in virtual time, and a program on each. The same calls give the same
// times, to the last bit.
//
//   Owns:     the hosts. The Contexts are their opener's and must end before it.
//   Threads:  one.
//   Blocks:   never in real time; virtual time passes in Run, and in calls of the Contexts that
//             wait.
//   Units:    virtual time.
//   Errors:   InvalidArgument and NotFound as ReadParameters; those of an application.
class Simulation {
 public:
  static constexpr size_t kHosts = 2;
  static constexpr double kNeverSleeps = 1e12;

  static absl::StatusOr<std::unique_ptr<Simulation>> Open(const std::string& testbed);
  ~Simulation();

  // On that host. What is done with it outside Run takes no time.
  absl::StatusOr<Context> OpenContext(size_t host, const ContextOptions& options);
  // Until both have ended. Each polls for `spin_us` when there is nothing, and then sleeps until its
  // device interrupts. Once. Aborted where nothing can happen any more and one has not ended.
  absl::Status Run(const std::array<Application*, kHosts>& applications, double spin_us);

  // Of a clock that begins somewhere.
  int64_t Nanoseconds() const;
  // Of a host's processors, all together.
  double BusySeconds(size_t host) const;

 private:
  struct State;
  explicit Simulation(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace esdp::testbed

#endif  // ESDP_TOOLS_TESTBED_SIMULATION_H_
