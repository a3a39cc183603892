#ifndef ESDP_IMPL_SDP_LIFECYCLE_HANDSHAKE_H_
#define ESDP_IMPL_SDP_LIFECYCLE_HANDSHAKE_H_

#include <cstdint>
#include <optional>

#include "impl/base/digest.h"
#include "impl/base/ring.h"
#include "impl/sdp/interface/config.h"
#include "impl/sdp/interface/input.h"
#include "impl/sdp/wire/messages.h"

// Hello and HelloAck: what is said and what is accepted [2.7, 2.8, 25]. When it happens is the table
// of phases' business.

namespace esdp::sdp {

// What the peer declared of itself, once and for the life of the connection.
struct PeerParameters {
  uint32_t receive_buffer_bytes = 0;  // header included
  uint16_t buffers = 0;               // posted at set-up
  uint16_t max_adverts = 0;           // ours that it can hold
  uint8_t minor_version = 0;          // the lower of both
  bool accepts_invalidate = false;    // Cap bit 0x1: any key it advertises may be invalidated
  bool knows_token = false;           // Cap bit 0x4
  bool may_be_moved = false;          // Cap bit 0x8
  wire::ReturnToken return_token{};   // of a HelloAck

  // [R19.1] It is, or behaves as, one of the deployed peers: Combined only, one SrcAvail at a time,
  // no SinkAvail, no ModeChange, no invalidate, no ChRcvBuf.
  bool deployed() const { return max_adverts == 1; }
  void AddTo(Digest& digest) const;
};

// `token`: of a return.
wire::Message MakeHello(const Config& config, uint16_t buffers_posted,
                        const wire::ReturnToken& token = {});
wire::Message MakeHelloAck(const Config& config, uint16_t buffers_posted,
                           const PeerParameters& peer);

// Whoever comes back to the connection has to know its token.
bool ReturnsAreGuarded(const Config& config, const PeerParameters& peer);

// Fills `peer` and returns nullptr, or returns why this peer cannot be lived with (a static text).
const char* CheckHello(const wire::Message& message, PeerParameters& peer);
const char* CheckHelloAck(const wire::Message& message, PeerParameters& peer);

// What both sides have declared of themselves, on the first queue pair and on each later one [12],
// and whether one may move the other there. What it answers of the peer's messages is a refusal as
// text, or nullptr.
class Handshake {
 public:
  explicit Handshake(const Config& config) : config_(config) {}

  const Config& config() const { return config_; }
  const PeerParameters& peer() const { return peer_; }
  // A queue pair, the first or a later one, starts with what was wanted last.
  void Want(const AskMode& ask) {
    config_.mode_send = ask.send;
    config_.mode_receive = ask.receive;
  }

  // --- what we say; `posted`: receive buffers ---
  wire::Message Hello(uint16_t posted) const { return MakeHello(config_, posted); }
  wire::Message HelloOfReturn(uint16_t posted) const {
    return MakeHello(config_, posted, config_.return_token);
  }
  wire::Message HelloAck(uint16_t posted) const { return MakeHelloAck(config_, posted, peer_); }

  // --- what the peer says ---
  const char* OnHello(const wire::Message& hello) { return CheckHello(hello, peer_); }
  // `message_bytes`: of the messages that we have cut already; 0 on the first queue pair.
  const char* OnHelloAck(const std::optional<wire::Message>& hello_ack, uint32_t message_bytes);
  // Whether this Hello is of the peer that is to come back, and may be taken. For any time.
  const char* CheckReturn(const wire::Message& hello) const;
  static const char* CheckHelloOfReturn(const wire::Message& hello, uint32_t message_bytes);
  void OnPath(const std::optional<PathAddresses>& addresses);
  // The next Hello says what `receive_buffer_bytes` is now.
  void OnQueuePairLeft(uint32_t receive_buffer_bytes) {
    config_.receive_buffer_bytes = receive_buffer_bytes;
  }
  void OnConnectingAnew(bool connecting) { config_.connecting = connecting; }

  // --- moves [R12.11] ---
  bool MayMovePeer() const;
  // SuspComm has no answer that says no: a peer that asks for what it was told not to breaks the
  // protocol.
  const char* RefusalOfMove() const;

  // --- messages that arrive before the queue pair is reported ready [R2.7.4] ---
  void Keep(const MessageArrived& arrived) { early_.PushBack(arrived); }
  bool has_early() const { return !early_.empty(); }
  MessageArrived TakeEarly() { return early_.TakeFront(); }
  void DropEarly() { early_.clear(); }

  void AddTo(Digest& digest) const;

 private:
  Config config_;
  PeerParameters peer_;
  GrowingRing<MessageArrived> early_;
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_LIFECYCLE_HANDSHAKE_H_
