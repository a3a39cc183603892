#ifndef ESDP_TESTS_SDP_SOLO_H_
#define ESDP_TESTS_SDP_SOLO_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "impl/sdp/connection.h"

// One core, and a peer that says whatever a test wants. Receive buffers, sequence numbers and
// acknowledgements of an honest peer are kept for it.

namespace esdp::sdp::testing {

class Solo {
 public:
  explicit Solo(const Config& config) : config_(config), core_(config) {}

  // Set-up up to Established, against a peer with these parameters.
  struct Peer {
    uint16_t buffers = 8;
    uint32_t receive_bytes = 1040;
    uint8_t max_adverts = 1;
    uint8_t capabilities = 0;
    uint32_t reads_out = 4, reads_in = 4;
  };
  void Establish(const Peer& peer);
  void Establish() { Establish(Peer{}); }
  wire::Message PeerHello(const Peer& peer) const;
  wire::Message PeerHelloAck(const Peer& peer) const;

  // One step; its actions replace those of the last one.
  const Actions& Step(const Input& input);
  // The peer's next message, honest in its header; Bufs as last told.
  MessageArrived Next(const wire::Body& body, uint32_t payload_bytes = 0);
  const Actions& Arrive(const wire::Body& body, uint32_t payload_bytes = 0);
  void TellBuffers(uint16_t buffers) { peer_buffers_ = buffers; }
  // Lets every posted Send finish.
  void FinishSends();

  // --- the application ---
  OperationId Send(uint32_t bytes, AskSend traits = {});
  OperationId Receive(uint32_t bytes, AskReceive traits = {});

  // --- what came out ---
  const Actions& last() const { return last_; }
  const std::vector<Action>& all() const { return all_; }
  template <typename T>
  static std::vector<T> Of(const std::vector<Action>& actions) {
    std::vector<T> found;
    for (const Action& action : actions) {
      if (const T* it = std::get_if<T>(&action); it != nullptr) found.push_back(*it);
    }
    return found;
  }
  template <typename T>
  std::vector<T> Last() const {
    return Of<T>(last_);
  }
  // The messages of the last step with a body of type T.
  template <typename T>
  std::vector<sdp::Send> Sent() const {
    std::vector<sdp::Send> found;
    for (const sdp::Send& send : Last<sdp::Send>()) {
      if (std::holds_alternative<T>(send.message.body)) found.push_back(send);
    }
    return found;
  }
  std::optional<FinishOperation> Result(OperationId operation) const;

  // Messages that the peer may send by what it was told last.
  int peer_credits() const {
    return static_cast<int>(our_buffers_) - static_cast<int>(peer_sequence_ - our_acknowledged_);
  }
  // No buffer was ever posted that was posted already.
  bool no_buffer_twice() const { return no_buffer_twice_; }

  Connection& core() { return core_; }
  Time now{};
  bool exposes = true;   // how Expose is answered
  bool prepares = true;  // how PrepareReceives is answered

 private:
  void Note(const Action& action);

  Config config_;
  Connection core_;
  Actions last_;
  std::vector<Action> all_;
  std::deque<ReceiveBuffer> posted_;
  size_t sends_out_ = 0;
  uint32_t next_operation_ = 1;
  uint32_t peer_sequence_ = 0;
  uint32_t our_sequence_ = 0;
  uint32_t our_acknowledged_ = 0;
  uint16_t our_buffers_ = 0;
  bool no_buffer_twice_ = true;
  uint16_t peer_buffers_ = 8;
};

}  // namespace esdp::sdp::testing

#endif  // ESDP_TESTS_SDP_SOLO_H_
