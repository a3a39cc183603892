#ifndef ESDP_IMPL_FABRIC_SIM_RENDEZVOUS_H_
#define ESDP_IMPL_FABRIC_SIM_RENDEZVOUS_H_

#include <map>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "impl/fabric/sim/handshake.h"
#include "impl/fabric/sim/sim_queue_pair.h"

namespace esdp::fabric::sim {

// The listeners of one fabric and the connection requests that wait for their answers.
//
//   Owns:     its listeners' entries in the address book.
//   Threads:  one.
//   Blocks:   never.
//   Units:    –
//   Errors:   as CONTRACT.md states them, C.
class Rendezvous : public ListenerOwner, public std::enable_shared_from_this<Rendezvous> {
 public:
  explicit Rendezvous(const Surroundings& surroundings) : around_(surroundings) {}
  ~Rendezvous() override { StopAll(); }

  absl::StatusOr<ListenerId> Listen(const Address& address);
  absl::StatusOr<Address> AddressOf(ListenerId listener) const;
  absl::Status Stop(ListenerId listener);
  void StopAll();
  size_t listeners() const { return listeners_.size(); }

  // The request, which is answered with this call; NotFound when there is none.
  absl::StatusOr<std::shared_ptr<Handshake>> TakeRequest(RequestId request);
  bool HasRequest(RequestId request) const { return requests_.contains(request); }
  void Reject(const Handshake& handshake, ConstBytes private_data);

  void OnRequest(ListenerId listener, const std::shared_ptr<Handshake>& handshake) override;
  void OnWithdrawn(const std::shared_ptr<Handshake>& handshake) override;

 private:
  struct Request {
    ListenerId listener = ListenerId::kNone;
    std::shared_ptr<Handshake> handshake;
  };

  Surroundings around_;
  uint64_t last_request_ = 0;
  std::map<ListenerId, Address> listeners_;
  std::map<RequestId, Request> requests_;
};

}  // namespace esdp::fabric::sim

#endif  // ESDP_IMPL_FABRIC_SIM_RENDEZVOUS_H_
