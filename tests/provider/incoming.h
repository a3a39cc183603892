#ifndef ESDP_TESTS_PROVIDER_INCOMING_H_
#define ESDP_TESTS_PROVIDER_INCOMING_H_

#include <cstdint>

#include "tests/provider/scripted.h"

// Connection requests from addresses that the test names.

namespace esdp::provider {

class IncomingTest : public ScriptedTest {
 protected:
  explicit IncomingTest(const PeerBounds& bounds = {}) : ScriptedTest(Progress::kManual, bounds) {}

  void Listen(int backlog) { listener_ = *side_.shard->Listen(Loopback(0), backlog, {}); }
  static Address At(uint8_t host, uint16_t port) {
    Address address = Loopback(port);
    address.bytes[15] = host;
    return address;
  }
  // The queue pair that it gets; that of the one before: it is refused.
  fabric::QueuePairId Request(uint8_t host) {
    return Request(At(host, static_cast<uint16_t>(requests_ + 1)));
  }
  fabric::QueuePairId Request(const Address& peer) {
    RendezvousEvent event;
    event.type = RendezvousType::kConnectRequest;
    event.listener = fabric::ListenerId{(*side_.shard->ListenerAddress(listener_)).port};
    event.request = fabric::RequestId{++requests_};
    event.peer = peer;
    event.local = Loopback(5001);
    Put(event, Hello(peer.family));
    fabric_->Raise(event);
    Poll();
    return fabric_->last_queue_pair();
  }
  void Establish(fabric::QueuePairId queue_pair) {
    RendezvousEvent event = EventOf(RendezvousType::kEstablished);
    event.queue_pair = queue_pair;
    fabric_->Raise(event);
    Poll();
  }
  // It fails before it comes about.
  void Fail(fabric::QueuePairId queue_pair) {
    RendezvousEvent event = EventOf(RendezvousType::kConnectFailed, Cause::kPeerReset);
    event.queue_pair = queue_pair;
    fabric_->Raise(event);
    Poll();
  }

  ListenerId listener_{};
  uint64_t requests_ = 0;

 private:
  static wire::Message Hello(fabric::Family family) {
    wire::Message message = ScriptedTest::Hello();
    std::get<wire::Hello>(message.body).ip_version = static_cast<uint8_t>(family);
    return message;
  }
};

}  // namespace esdp::provider

#endif  // ESDP_TESTS_PROVIDER_INCOMING_H_
