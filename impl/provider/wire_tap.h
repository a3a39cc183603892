#ifndef ESDP_IMPL_PROVIDER_WIRE_TAP_H_
#define ESDP_IMPL_PROVIDER_WIRE_TAP_H_

#include <cstddef>
#include <cstdint>

#include "impl/base/bytes.h"
#include "impl/base/time.h"
#include "impl/provider/types.h"
#include "impl/sdp/wire/messages.h"

namespace esdp::provider {

// One message of a connection, as it is encoded or has been decoded.
struct WireMessage {
  enum class Direction : uint8_t { kSent, kReceived };

  Direction direction = Direction::kSent;
  ConnectionId connection = ConnectionId::kNone;
  Time at{};
  ConstBytes header;  // as on the wire: a compact Hello is what leaves, or has come
  const sdp::wire::Message& message;
  uint64_t payload_bytes = 0;  // that follow the header
};

// Sees every message of a shard's connections, Hello and HelloAck among them. It does not see what
// could not be decoded, nor a Hello that was rejected before there was a connection. Our Hello and
// HelloAck are shown once the fabric has taken them, other messages of ours when they are encoded:
// shortly before they are posted, and in the same order.
//
//   Owns:     nothing.
//   Threads:  called by the holder of the shard lock; must not call the shard.
//   Blocks:   must not.
//   Units:    bytes; instants on the fabric's clock.
//   Errors:   none.
class WireTap {
 public:
  virtual ~WireTap() = default;
  // Its header and message are there during the call only.
  virtual void OnMessage(const WireMessage& message) = 0;
};

// Where the messages pass a tap, if there is one.
class TapPoint {
 public:
  explicit TapPoint(WireTap* tap) : tap_(tap) {}

  void Sent(ConnectionId connection, Time at, ConstBytes header, const sdp::wire::Message& message,
            uint64_t payload_bytes = 0) const {
    if (tap_ == nullptr) [[likely]]
      return;
    tap_->OnMessage(
        {WireMessage::Direction::kSent, connection, at, header, message, payload_bytes});
  }
  void Received(ConnectionId connection, Time at, ConstBytes header,
                const sdp::wire::Message& message, uint64_t payload_bytes = 0) const {
    if (tap_ == nullptr) [[likely]]
      return;
    tap_->OnMessage(
        {WireMessage::Direction::kReceived, connection, at, header, message, payload_bytes});
  }

 private:
  WireTap* const tap_;
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_WIRE_TAP_H_
