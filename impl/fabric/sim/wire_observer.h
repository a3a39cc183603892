#ifndef ESDP_IMPL_FABRIC_SIM_WIRE_OBSERVER_H_
#define ESDP_IMPL_FABRIC_SIM_WIRE_OBSERVER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "impl/base/bytes.h"
#include "impl/fabric/sim/faults.h"
#include "impl/fabric/sim/frame.h"
#include "impl/fabric/types.h"

namespace esdp::fabric::sim {

// One end of a connection. A connection is told by the connecting side's port, which the world
// gives out in turn.
struct WireEnd {
  uint64_t queue_pair = 0;  // its number in the world
  uint16_t connection = 0;
  bool connecting = false;
  uint16_t listener = 0;  // the accepting side's port
};

// What memory is touched for.
enum class Touch : uint8_t {
  kRemoteRead,   // the peer reads
  kRemoteWrite,  // the peer writes
  kReadTarget,   // what we have read from the peer is placed
};

// Sees what passes through a world, without being part of it: for tests, which check what they see
// or play a peer that breaks the rules.
//
//   Owns:     nothing.
//   Threads:  the world's one.
//   Blocks:   must not, and must not call into the world's fabrics.
//   Units:    bytes.
//   Errors:   –
class WireObserver {
 public:
  virtual ~WireObserver() = default;

  // A frame leaves. Its payload may be changed; whoever does so says World::NoteFault(kHostile).
  virtual void OnTransmit(const WireEnd& from, Frame& frame) { (void)from, (void)frame; }
  // A frame has arrived, in the order of arrival, whether it is accepted or not.
  virtual void OnArrive(const WireEnd& at, const Frame& frame) { (void)at, (void)frame; }
  // Memory that an operation of the peer's, or a read of ours, is allowed to touch is touched.
  virtual void OnTouch(const WireEnd& at, const std::byte* address, uint64_t length, Touch touch) {
    (void)at, (void)address, (void)length, (void)touch;
  }
  // The private data of a request or of its answer leaves. It may be changed like a payload.
  virtual void OnPrivateData(const WireEnd& from, std::vector<std::byte>& data) {
    (void)from, (void)data;
  }
  // A connection is going to break.
  virtual void OnFault(const WireEnd& at, FaultKind kind) { (void)at, (void)kind; }
  virtual void OnEstablished(const WireEnd& at) { (void)at; }
  virtual void OnEnd(const WireEnd& at, Cause cause) { (void)at, (void)cause; }
};

}  // namespace esdp::fabric::sim

#endif  // ESDP_IMPL_FABRIC_SIM_WIRE_OBSERVER_H_
