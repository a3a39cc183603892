#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "impl/base/bytes.h"
#include "impl/sdp/wire/codec.h"
#include "impl/sdp/wire/messages.h"

// What a connection manager's private data must hold to open a connection (sections 2.6, 2.8 and
// 25).

namespace esdp::sdp::wire {
namespace {

// [R2.6.6]
std::optional<DecodeError> CheckMessageId(ConstBytes bytes, MessageId id) {
  if (bytes.empty()) return DecodeError{"bsdh.mid", "is missing: there is no private data"};
  if (bytes[0] != std::byte{static_cast<uint8_t>(id)}) {
    return DecodeError{"bsdh.mid", "is another message's"};
  }
  return std::nullopt;
}

// [R2.6.2, R2.6.5] The part of a full Hello that the connection manager had no room for, from what
// the transport says.
std::array<std::byte, kHelloBytes> Rebuild(ConstBytes compact,
                                           const TransportAddresses& addresses) {
  std::array<std::byte, kHelloBytes> whole{};
  const Bytes out(whole);
  CopyBytes(out, compact.first(kCompactHelloBytes));
  CopyBytes(out.subspan(32), std::as_bytes(std::span(addresses.peer)));
  CopyBytes(out.subspan(48), std::as_bytes(std::span(addresses.local)));
  if (compact.size() >= kCompactHelloExtendedBytes) {
    CopyBytes(out.subspan(64), compact.subspan(kCompactHelloBytes, 4));
  }
  if (compact.size() >= kCompactHelloTokenBytes) {
    CopyBytes(out.subspan(68), compact.subspan(kCompactHelloExtendedBytes, sizeof(ReturnToken)));
  }
  return whole;
}

std::optional<DecodeError> DecodeCompactHello(ConstBytes compact,
                                              const TransportAddresses& addresses,
                                              Message& message) {
  const std::array<std::byte, kHelloBytes> whole = Rebuild(compact, addresses);
  if (const auto error = Decode(whole, message)) return error;
  const Hello& hello = *std::get_if<Hello>(&message.body);
  if (hello.ip_version != addresses.ip_version) {  // [R2.6.3]
    return DecodeError{"hh.ipv", "differs from the transport's"};
  }
  if (hello.local_port != addresses.peer_port) {  // [R2.6.4]
    return DecodeError{"hh.local_port", "differs from the transport's"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<DecodeError> DecodeHello(ConstBytes private_data, const TransportAddresses& addresses,
                                       Message& message) {
  if (const auto error = CheckMessageId(private_data, MessageId::kHello)) return error;
  if (private_data.size() < kCompactHelloBytes) {  // [R2.6.1]
    return Decode(private_data, message);          // names the field that the cut fell into
  }
  // [R25.2] The addresses inside a full one are not compared.
  const auto error = private_data.size() < kHelloBytes
                         ? DecodeCompactHello(private_data, addresses, message)
                         : Decode(private_data.first(kHelloBytes), message);
  if (error) return error;
  if (message.base.buffers < kInitialBuffersMin) {  // [R2.8.4, R4.5.1]
    return DecodeError{"bsdh.bufs", "is fewer than 3 receive buffers"};
  }
  if (std::get_if<Hello>(&message.body)->major_version != kMajorVersion) {  // [R2.8.1]
    return DecodeError{"hh.majv", "is not 2, the version spoken here"};
  }
  return std::nullopt;
}

std::optional<DecodeError> DecodeHelloAck(ConstBytes private_data, Message& message) {
  if (const auto error = CheckMessageId(private_data, MessageId::kHelloAck)) return error;
  const ConstBytes whole = private_data.first(std::min(private_data.size(), kHelloAckBytes));
  if (const auto error = Decode(whole, message)) return error;
  if (std::get_if<HelloAck>(&message.body)->major_version != kMajorVersion) {  // [R2.8.1]
    return DecodeError{"hah.majv", "is not 2, the version that was offered"};
  }
  return std::nullopt;
}

}  // namespace esdp::sdp::wire
