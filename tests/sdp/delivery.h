#ifndef ESDP_TESTS_SDP_DELIVERY_H_
#define ESDP_TESTS_SDP_DELIVERY_H_

#include <gtest/gtest.h>

#include <vector>

#include "tests/sdp/pair.h"
#include "tests/sdp/solo.h"

// One core that takes part in all modes, and a scripted peer.

namespace esdp::sdp::testing {

inline constexpr uint32_t kLarge = 10000;

class DeliveryTest : public ::testing::Test {
 protected:
  DeliveryTest() : DeliveryTest(SmallConfig(true)) {}
  explicit DeliveryTest(const Config& config) : solo_(config) {}

  void Establish(uint8_t max_adverts = 16) {
    Solo::Peer peer;
    peer.buffers = 64;
    peer.max_adverts = max_adverts;
    solo_.Establish(peer);
    solo_.TellBuffers(64);
  }
  void Want(ModeWish send, ModeWish receive = ModeWish::kAutomatic) {
    solo_.Step(AskMode{send, receive});
  }
  OperationId Advertise(uint32_t bytes = kLarge) {
    AskSend traits;
    traits.exposable = true;
    traits.zcopy_min = 4096;
    const OperationId id = solo_.Send(bytes, traits);
    solo_.FinishSends();
    return id;
  }
  void Withdrawn(uint32_t advert) { solo_.Step(esdp::sdp::Withdrawn{AdvertId{advert}}); }
  void Cancel(OperationId id, CancelMode mode = CancelMode::kIfNotStarted) {
    solo_.Step(AskCancel{id, mode, Outcome::kCancelled});
  }
  // The peer's message as if it had not yet seen our last `unseen` ones.
  void ArriveCrossed(const wire::Body& body, uint32_t unseen) {
    MessageArrived arrived = solo_.Next(body);
    arrived.message.base.acknowledged -= unseen;
    arrived.message.base.buffers = 32;
    solo_.Step(arrived);
  }
  template <typename T>
  std::vector<Send> AllSent() const {
    std::vector<Send> found;
    for (const Send& send : Solo::Of<Send>(solo_.all())) {
      if (std::holds_alternative<T>(send.message.body)) found.push_back(send);
    }
    return found;
  }
  static uint64_t Gathered(const std::vector<Send>& sends) {
    uint64_t bytes = 0;
    for (const Send& send : sends) {
      for (uint32_t i = 0; i < send.gather_count; ++i) bytes += send.gather[i].length;
    }
    return bytes;
  }
  Outcome EndedWith() const {
    const auto ends = Solo::Of<Disconnect>(solo_.all());
    return ends.empty() ? Outcome::kDone : ends[0].cause;
  }

  Solo solo_;
};

}  // namespace esdp::sdp::testing

#endif  // ESDP_TESTS_SDP_DELIVERY_H_
