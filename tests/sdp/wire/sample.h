#ifndef ESDP_TESTS_SDP_WIRE_SAMPLE_H_
#define ESDP_TESTS_SDP_WIRE_SAMPLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "impl/base/bytes.h"
#include "impl/sdp/wire/codec.h"
#include "impl/sdp/wire/messages.h"

// Bytes to spoil one place of, and what the decoder says of them.

namespace esdp::sdp::wire {

using Buffer = std::vector<std::byte>;

inline Buffer BytesOf(const Message& message, size_t payload_bytes = 0) {
  Buffer bytes(HeaderBytes(IdOf(message)) + payload_bytes);
  Encode(message, payload_bytes, bytes);
  return bytes;
}

template <typename T>
Buffer BytesOf(const T& body, size_t payload_bytes = 0) {
  return BytesOf(Message{BaseHeader{.buffers = 8, .sequence = 7, .acknowledged = 5}, body},
                 payload_bytes);
}

inline Hello SampleHello() {
  Hello hello;
  hello.desired_remote_receive_size = 16400;
  hello.local_receive_size = 16400;
  hello.local_port = 40000;
  hello.source_address = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 127, 0, 0, 1};
  hello.destination_address = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 127, 0, 0, 2};
  return hello;
}

inline Buffer HelloBytes(const Hello& hello = SampleHello()) {
  return BytesOf(Message{BaseHeader{.buffers = 8}, hello});
}

inline Buffer HelloAckBytes(uint32_t receive_size = 16400) {
  return BytesOf(Message{BaseHeader{.buffers = 8}, HelloAck{.actual_receive_size = receive_size}});
}

// What the transport says of a connection whose Hello is SampleHello().
inline TransportAddresses SampleAddresses() {
  const Hello hello = SampleHello();
  return {hello.ip_version, hello.local_port, hello.source_address, hello.destination_address};
}

template <typename T>
Buffer With(Buffer bytes, size_t offset, T value) {
  StoreBigEndian<T>(bytes, offset, value);
  return bytes;
}

inline Buffer With8(Buffer bytes, size_t offset, uint8_t value) {
  return With<uint8_t>(std::move(bytes), offset, value);
}
inline Buffer With32(Buffer bytes, size_t offset, uint32_t value) {
  return With<uint32_t>(std::move(bytes), offset, value);
}

// The name of the field that is refused, or "" where the bytes are a message.
inline std::string Refused(const Buffer& bytes) {
  Message message;
  const auto error = Decode(bytes, message);
  return error ? error->field : "";
}

inline std::string RefusedHello(const Buffer& bytes,
                                const TransportAddresses& addresses = SampleAddresses()) {
  Message message;
  const auto error = DecodeHello(bytes, addresses, message);
  return error ? error->field : "";
}

inline std::string RefusedHelloAck(const Buffer& bytes) {
  Message message;
  const auto error = DecodeHelloAck(bytes, message);
  return error ? error->field : "";
}

}  // namespace esdp::sdp::wire

#endif  // ESDP_TESTS_SDP_WIRE_SAMPLE_H_
