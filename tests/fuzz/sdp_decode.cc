#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "impl/base/bytes.h"
#include "impl/sdp/wire/codec.h"
#include "impl/sdp/wire/messages.h"
#include "impl/sdp/wire/text.h"

// Bytes into the decoders of SDP messages. Whatever is accepted must survive being encoded, decoded
// again and printed; whatever is refused must say which field and why.

namespace esdp::sdp::wire {
namespace {

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

void RequireReason(const DecodeError& error) {
  Require(!std::string_view(error.field).empty() && !std::string_view(error.reason).empty());
}

// A message that was accepted, with as much payload as its Len says.
void RequireRoundTrip(const Message& message) {
  const size_t header = HeaderBytes(IdOf(message));
  Require(header >= kBaseHeaderBytes && message.base.length >= header);
  std::array<std::byte, kHelloAckBytes + 1> again{};
  const size_t payload = message.base.length - header;
  Require(payload == 0 || MayCarryPayload(IdOf(message)));
  Require(Encode(message, payload, again) == header);

  if (header + payload <= again.size()) {
    Message decoded;
    Require(!Decode(ConstBytes(again).first(header + payload), decoded));
    Require(decoded == message);
  }
  Require(ToText(message).starts_with(NameOf(IdOf(message))));
}

void DecodeAsMessage(ConstBytes bytes) {
  Message message;
  if (const auto error = Decode(bytes, message)) return RequireReason(*error);
  Require(message.base.length == bytes.size());
  RequireRoundTrip(message);
}

// The addresses are those of the vectors' compact Hello, which is in the corpus.
void DecodeAsOpening(ConstBytes bytes) {
  TransportAddresses addresses{.ip_version = 4, .peer_port = 40000};
  addresses.peer = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 192, 168, 10, 1};
  addresses.local = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 192, 168, 10, 2};
  Message hello;
  if (const auto error = DecodeHello(bytes, addresses, hello)) {
    RequireReason(*error);
  } else {
    Require(std::holds_alternative<Hello>(hello.body));
    RequireRoundTrip(hello);
  }
  Message answer;
  if (const auto error = DecodeHelloAck(bytes, answer)) {
    RequireReason(*error);
  } else {
    Require(std::holds_alternative<HelloAck>(answer.body));
    RequireRoundTrip(answer);
  }
}

}  // namespace
}  // namespace esdp::sdp::wire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const esdp::ConstBytes bytes = std::as_bytes(std::span(data, size));
  esdp::sdp::wire::DecodeAsMessage(bytes);
  esdp::sdp::wire::DecodeAsOpening(bytes);
  return 0;
}
