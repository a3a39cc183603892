#ifndef ESDP_IMPL_FABRIC_SIM_HOST_MODEL_H_
#define ESDP_IMPL_FABRIC_SIM_HOST_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "impl/base/time.h"
#include "impl/fabric/types.h"

namespace esdp::fabric::sim {

// What is on its way between two hosts. Of one flow nothing overtakes anything.
struct Cargo {
  uint64_t flow = 0;     // the queue pair, and which way
  uint64_t bytes = 0;    // of payload
  bool answers = false;  // an RDMA read: the responder's device had to fetch it
};

// What a simulated host takes for what its fabric is asked to do: the processor's time for calls,
// the device's and the link's for what they carry. A fabric without one takes nothing, and what it
// carries travels as the world draws. A model is told and asked; it carries out nothing itself.
//
//   Owns:     –
//   Threads:  the world's lock.
//   Blocks:   never.
//   Units:    bytes, virtual time.
//   Errors:   –
class HostModel : public std::enable_shared_from_this<HostModel> {
 public:
  virtual ~HostModel() = default;

  // What the processor has done now, charged to whoever runs on it.
  virtual void OnRegister(uint64_t bytes) = 0;
  virtual void OnDeregister(uint64_t bytes) = 0;
  virtual void OnPost(Opcode opcode) = 0;
  virtual void OnPolled(Opcode opcode) = 0;

  // When the device sees what is posted now: not before the processor has got so far.
  virtual Time DeviceTime() const = 0;
  // Takes it to `peer`, which may be null, and runs `arrive` there.
  virtual void Carry(const Cargo& cargo, HostModel* peer, std::function<void()> arrive) = 0;

  // A device has read or written so many bytes of the memory.
  virtual void OnDma(uint64_t bytes) = 0;

  // There is something to poll: `sends` completions of what was sent, and, if `more`, something
  // that somebody waits for. The host answers by running `poll` when a processor has come to it.
  virtual void OnSomethingToPoll(size_t sends, bool more) = 0;
  // How many completions one poll may take now.
  virtual size_t PollLimit() = 0;
  virtual void SetPoll(std::function<void()> poll) = 0;
};

}  // namespace esdp::fabric::sim

#endif  // ESDP_IMPL_FABRIC_SIM_HOST_MODEL_H_
