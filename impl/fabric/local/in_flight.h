#ifndef ESDP_IMPL_FABRIC_LOCAL_IN_FLIGHT_H_
#define ESDP_IMPL_FABRIC_LOCAL_IN_FLIGHT_H_

#include <cstdint>

#include "impl/fabric/soft/work_queue.h"

// What a queue pair has begun and not ended.

namespace esdp::fabric::local {

// A message that has begun to arrive.
struct Incoming {
  bool active = false;
  bool has_key = false;
  uint32_t length = 0;
  uint32_t received = 0;
  uint32_t key = 0;
  soft::Place place;
};

// One of ours that is not wholly answered.
struct ReadInFlight {
  uint64_t slot = 0;
  uint32_t received = 0;
  soft::Place place;
};

// A write whose bytes the peer takes by itself.
struct WriteInFlight {
  uint64_t work = 0;
  uint64_t end = 0;  // slots the peer has taken when it has done so
};

// One of the peer's.
struct PeerRead {
  uint32_t key = 0;
  uint32_t length = 0;
  uint64_t address = 0;
  uint32_t answered = 0;
};

}  // namespace esdp::fabric::local

#endif  // ESDP_IMPL_FABRIC_LOCAL_IN_FLIGHT_H_
