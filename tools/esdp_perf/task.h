#ifndef ESDP_TOOLS_ESDP_PERF_TASK_H_
#define ESDP_TOOLS_ESDP_PERF_TASK_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "esdp/options.h"
#include "tools/esdp_perf/fields.h"

namespace esdp_perf {

using esdp::kNever;

// What one run does. The client draws it up from its options and tells the server. Directions are
// the client's: "send" is from client to server.
struct Task {
  enum class Mode { kBandwidth, kLatency, kRate, kFile } mode = Mode::kBandwidth;
  bool send = true;
  bool receive = false;

  uint64_t size = 1 << 20;    // bytes of one send
  uint64_t receive_size = 0;  // bytes of one receive. 0: the same, and each is filled whole
  uint64_t depth = 8;         // operations in flight for each connection and direction
  uint64_t batch = 1;         // sends of one post
  uint64_t receives = 0;      // in flight with `receive_size`. 0: a megabyte of them, up to `depth`
  uint64_t connections = 1;
  uint64_t sources = 0;  // pieces of memory that sends take in turn. 0: as many as `depth`
  uint64_t targets = 0;  // the same of receives. 0: as many as are in flight
  uint64_t bytes = 0;    // for each connection and direction. 0: as long as `seconds`
  double seconds = 5;
  double warm_up = 0;              // seconds before them, which the figures leave out
  uint64_t threshold = 64 * 1024;  // operations of this size and more go zero-copy; kNever: none
  bool manual = false;             // progress in the calling thread, which spins
  uint64_t pause = 0;              // milliseconds between the connection and the first send
  uint64_t spin = 0;               // microseconds that a progress thread polls before it sleeps
  std::string congestion;          // of TCP, by name; empty: the system's
  bool region_key = false;         // show the peer whole regions, for good, and no single ranges
  uint64_t buffers = 16;           // of a connection, to receive messages in
  uint64_t buffer_bytes = 0;       // payload of each; 0: as the library has them
  bool foreign = false;            // register memory of this program's: none of Allocate
  bool checksum = false;           // ask the fabric for an end-to-end checksum
  bool lend_pages = false;         // of zero-copy sends, where the fabric can
  bool verify = false;             // fill and check each byte
  uint64_t seed = 1;
  std::string file;  // kFile: the file's name in the server's folder
  std::string fabric = "qpip";

  bool operator==(const Task&) const = default;
};

const char* NameOf(Task::Mode mode);

// Receives that are kept in flight: `depth`, but of receives that take what comes `receives`, or no
// more than a megabyte.
uint64_t ReceivesInFlight(const Task& task);

Fields ToFields(const Task& task);

// InvalidArgument where a field has a value that no run can have: what came over a network is not
// trusted.
absl::StatusOr<Task> TaskFromFields(const Fields& fields);

// InvalidArgument names the option that is out of range.
absl::Status Check(const Task& task);

}  // namespace esdp_perf

#endif  // ESDP_TOOLS_ESDP_PERF_TASK_H_
