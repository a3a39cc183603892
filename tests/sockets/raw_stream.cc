#include "tests/sockets/raw_stream.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <span>

#include "tests/base/content.h"

namespace esdp::contract {
namespace {

sockaddr_in LoopbackAt(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

Octets Startup(const std::string& key, const Octets& private_data) {
  Octets frame(key.begin(), key.end());
  const Octets depths = {0x00, 0x10, 0x00, 0x10};
  frame.push_back(0x10);  // no markers, no checksum, not rejected, enhanced
  frame.push_back(2);
  frame.resize(20);
  Put(frame, 18, depths.size() + private_data.size(), 2);
  frame.insert(frame.end(), depths.begin(), depths.end());
  frame.insert(frame.end(), private_data.begin(), private_data.end());
  return frame;
}

}  // namespace

Octets FromHex(const std::string& hex) {
  Octets bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

Octets Garbage(uint64_t seed, size_t size) {
  Octets bytes(size);
  FillByChance(seed, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

void Put(Octets& bytes, size_t at, uint64_t value, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    bytes.at(at + i) = static_cast<uint8_t>(value >> (8 * (size - 1 - i)));
  }
}

Octets HonestHello() {
  Octets hello = FromHex(
      "000000400000005c0000000000000000"    // Hello, 64 buffers, 92 bytes
      "22400001000080100000801000000000");  // 2.2, IPv4, 1 advert, 32784 bytes both ways
  hello.resize(92);
  Put(hello, 28, 40000, 2);
  Put(hello, 44, INADDR_LOOPBACK, 4);
  Put(hello, 60, INADDR_LOOPBACK, 4);
  return hello;
}

Octets HonestHelloAck() {
  Octets ack = FromHex("01000040000000c400000000000000002200000100008010");
  ack.resize(196);
  return ack;
}

Octets SdpMessage(uint8_t mid, uint32_t sequence, const Octets& rest) {
  Octets message(16);
  message[0] = mid;
  Put(message, 2, 64, 2);
  Put(message, 4, 16 + rest.size(), 4);
  Put(message, 8, sequence, 4);
  message.insert(message.end(), rest.begin(), rest.end());
  return message;
}

Octets MpaRequest(const Octets& private_data) { return Startup("MPA ID Req Frame", private_data); }
Octets MpaReply(const Octets& private_data) { return Startup("MPA ID Rep Frame", private_data); }

// Length, the untagged header of DDP (last, queue 0), RDMAP Send, payload, padding, no checksum.
Octets SendFrame(const Octets& message, uint32_t sequence) {
  Octets frame(2 + 18);
  Put(frame, 0, 18 + message.size(), 2);
  frame[2] = 0x41;
  frame[3] = 0x43;
  Put(frame, 12, sequence, 4);
  frame.insert(frame.end(), message.begin(), message.end());
  frame.resize((frame.size() + 3) / 4 * 4 + 4);
  return frame;
}

bool RawStream::Connect(uint16_t port) {
  Close();
  socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = LoopbackAt(port);
  return connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

uint16_t RawStream::Listen() {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in address = LoopbackAt(0);
  socklen_t size = sizeof(address);
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) return 0;
  if (listen(listener_, 8) != 0) return 0;
  getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

uint16_t RawStream::port() const {
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

bool RawStream::Accept() {
  return pump_([this] {
    socket_ = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    return socket_ >= 0;
  });
}

void RawStream::Write(const Octets& bytes) {
  // A write to a stream that has ended is no fault here.
  (void)!send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void RawStream::Take() {
  std::array<uint8_t, 4096> some;
  while (!ended_) {
    const ssize_t got = recv(socket_, some.data(), some.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      ended_ = true;
    } else {
      taken_.insert(taken_.end(), some.begin(), some.begin() + got);
    }
  }
}

const Octets& RawStream::Read(size_t size) {
  pump_([&] {
    Take();
    return taken_.size() >= size || ended_;
  });
  return taken_;
}

bool RawStream::WaitForEnd() {
  return pump_([&] {
    Take();
    return ended_;
  });
}

void RawStream::EndWrites() { shutdown(socket_, SHUT_WR); }

void RawStream::FallSilent() {
  sock_filter drop{BPF_RET | BPF_K, 0, 0, 0};
  const sock_fprog program{1, &drop};
  (void)setsockopt(socket_, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

void RawStream::Close() {
  if (socket_ >= 0) close(socket_);
  if (listener_ >= 0) close(listener_);
  socket_ = listener_ = -1;
  taken_.clear();
  ended_ = false;
}

void RawStream::Reset() {
  const linger at_once{1, 0};
  setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  Close();
}

}  // namespace esdp::contract
