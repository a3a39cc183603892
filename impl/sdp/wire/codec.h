#ifndef ESDP_IMPL_SDP_WIRE_CODEC_H_
#define ESDP_IMPL_SDP_WIRE_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "impl/base/bytes.h"
#include "impl/sdp/wire/messages.h"

// Bytes to messages and back (sdp wire protocol, section 3). Pure; never reads or writes outside
// the spans given; never allocates. All integers are big-endian, all fields placed by offset.

namespace esdp::sdp::wire {

// Why bytes are no message. Both members are static texts: `field` is the name of the first field
// that is missing or wrong (for a cut message, the field that the cut fell into), such as
// "srcah.rkey" or "payload"; `reason` completes the sentence, such as "is a reserved mode".
struct DecodeError {
  const char* field = "";
  const char* reason = "";
};

MessageId IdOf(const Message& message);
const char* NameOf(MessageId id);  // "Hello", ...; "reserved" or "experimental" for other values

// Header bytes of a message of this kind, extended header included: the offset of its payload.
// 0 for an id that names no message.
size_t HeaderBytes(MessageId id);
// Data, SrcAvail and SinkAvail alone may carry user bytes.
bool MayCarryPayload(MessageId id);
// Section 16: the Send of this message asks for a solicited event at the receiver.
bool IsSolicited(const Message& message);

// Decodes one whole message; `bytes` is exactly what the queue pair delivered. Checks size,
// BSDH.Len, the message id, reserved values and ranges. Sequence numbers are left to the caller. On
// success message.base.length == bytes.size() and the payload is bytes.subspan(HeaderBytes(id)). On
// failure `message` is unspecified. Reserved bits are ignored, also those of flags and
// capabilities. A Hello or HelloAck of any version decodes; which version will do is for the two
// calls below.
std::optional<DecodeError> Decode(ConstBytes bytes, Message& message);

// Writes the header of `message` (not the payload) to the front of `out` with Len = header +
// payload_bytes; message.base.length is not looked at, reserved places become 0. Returns the
// header's size. `out` holds at least HeaderBytes(IdOf(message)) bytes. Values are the caller's to
// get right: only Decode judges them.
size_t Encode(const Message& message, size_t payload_bytes, Bytes out);

// What the transport says of the two ends, to rebuild a compact Hello (section 2.6).
struct TransportAddresses {
  uint8_t ip_version = 4;
  uint16_t peer_port = 0;
  AddressBytes peer{};
  AddressBytes local{};
};

// Decodes the private data of a connection request: a full Hello (92 bytes or more) or a compact
// one (32..91 bytes, the extended MaxAdverts from 36 on); a compact one is rebuilt from
// `addresses`, whose port and IP version must equal its own. The addresses inside a full Hello are
// not compared: a translated address is no reason to refuse (section 25). Beyond Decode's rules the
// major version must be kMajorVersion and the peer must have posted kInitialBuffersMin buffers
// (section 2.8).
std::optional<DecodeError> DecodeHello(ConstBytes private_data, const TransportAddresses& addresses,
                                       Message& message);

// Decodes the private data of the answer: a whole HelloAck, perhaps followed by padding. Beyond
// Decode's rules the major version must be kMajorVersion, which is what our Hello offers.
std::optional<DecodeError> DecodeHelloAck(ConstBytes private_data, Message& message);

}  // namespace esdp::sdp::wire

#endif  // ESDP_IMPL_SDP_WIRE_CODEC_H_
