#ifndef ESDP_IMPL_SDP_LIFECYCLE_HANDSHAKE_H_
#define ESDP_IMPL_SDP_LIFECYCLE_HANDSHAKE_H_

#include <cstdint>

#include "impl/base/digest.h"
#include "impl/sdp/interface/config.h"
#include "impl/sdp/wire/messages.h"

// Hello and HelloAck: what is said and what is accepted [2.7, 2.8, 25]. No state of its own: when
// it happens is the table of phases' business.

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

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_LIFECYCLE_HANDSHAKE_H_
