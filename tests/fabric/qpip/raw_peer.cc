#include "tests/fabric/qpip/raw_peer.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

namespace esdp::fabric::qpip {
namespace {

constexpr auto kPatience = std::chrono::seconds(5);

uint64_t NumberAt(const Octets& bytes, size_t offset, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) value = (value << 8) | bytes[offset + i];
  return value;
}

Octets Slice(const Octets& bytes, size_t from, size_t to) {
  return {bytes.begin() + static_cast<ptrdiff_t>(from), bytes.begin() + static_cast<ptrdiff_t>(to)};
}

}  // namespace

Octets operator+(Octets a, const Octets& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Octets Text(const std::string& text) { return {text.begin(), text.end()}; }

Octets Number(uint64_t value, size_t bytes) {
  Octets out;
  for (size_t i = bytes; i-- > 0;) out.push_back(static_cast<uint8_t>(value >> (8 * i)));
  return out;
}

uint32_t BitwiseCrc32c(const Octets& bytes) {
  uint32_t crc = 0xffffffffu;
  for (const uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
  }
  return ~crc;
}

Octets Startup(const RawStartup& startup) {
  const Octets data = startup.words.value_or(Octets{}) + startup.data;
  return Text(startup.key) + Octets{startup.flags, startup.revision} +
         Number(startup.length.value_or(static_cast<uint16_t>(data.size())), 2) + data;
}

Octets Tagged(uint8_t opcode, uint32_t tag, uint64_t offset, const Octets& payload, bool last,
              uint8_t ddp_version, uint8_t rdmap_version) {
  const auto control = static_cast<uint8_t>(0x80 | (last ? 0x40 : 0) | ddp_version);
  const auto rdmap = static_cast<uint8_t>((rdmap_version << 6) | opcode);
  return Octets{control, rdmap} + Number(tag, 4) + Number(offset, 8) + payload;
}

Octets Untagged(const RawUntagged& header, const Octets& payload) {
  const auto control = static_cast<uint8_t>((header.last ? 0x40 : 0) | header.ddp_version);
  const auto rdmap = static_cast<uint8_t>((header.rdmap_version << 6) | header.opcode);
  return Octets{control, rdmap} + Number(header.word, 4) + Number(header.queue, 4) +
         Number(header.sequence, 4) + Number(header.offset, 4) + payload;
}

Octets ReadRequestOf(uint32_t sink, uint64_t sink_offset, uint32_t length, uint32_t source,
                     uint64_t source_offset) {
  return Number(sink, 4) + Number(sink_offset, 8) + Number(length, 4) + Number(source, 4) +
         Number(source_offset, 8);
}

Octets Frame(const Octets& ulpdu, bool summed) {
  Octets frame = Number(ulpdu.size(), 2) + ulpdu;
  while (frame.size() % 4 != 0) frame.push_back(0);
  const uint32_t crc = summed ? BitwiseCrc32c(frame) : 0;
  for (int i = 0; i < 4; ++i) frame.push_back(static_cast<uint8_t>(crc >> (8 * i)));
  return frame;
}

bool RawPeer::Connect(uint16_t port, bool ipv6) {
  socket_ = socket(ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM, 0);
  const int one = 1;
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(port);
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in6 in6{};
  in6.sin6_family = AF_INET6;
  in6.sin6_port = htons(port);
  in6.sin6_addr = in6addr_loopback;
  const int result = ipv6 ? connect(socket_, reinterpret_cast<sockaddr*>(&in6), sizeof(in6))
                          : connect(socket_, reinterpret_cast<sockaddr*>(&in), sizeof(in));
  return result == 0;
}

uint16_t RawPeer::Listen() {
  listener_ = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(in);
  if (bind(listener_, reinterpret_cast<sockaddr*>(&in), size) != 0) return 0;
  if (listen(listener_, 1) != 0) return 0;
  getsockname(listener_, reinterpret_cast<sockaddr*>(&in), &size);
  return ntohs(in.sin_port);
}

bool RawPeer::Accept() {
  fcntl(listener_, F_SETFL, O_NONBLOCK);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (socket_ < 0 && std::chrono::steady_clock::now() < end) {
    pump_();
    socket_ = accept(listener_, nullptr, nullptr);
  }
  return socket_ >= 0;
}

bool RawPeer::Send(const Octets& bytes) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t gone =
        send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (gone > 0) sent += static_cast<size_t>(gone);
    if (gone < 0 && errno != EAGAIN) return false;
    if (std::chrono::steady_clock::now() > end) return false;
    pump_();
  }
  return true;
}

size_t RawPeer::Offer(const Octets& bytes, size_t from) {
  const ssize_t gone =
      send(socket_, bytes.data() + from, bytes.size() - from, MSG_NOSIGNAL | MSG_DONTWAIT);
  return gone > 0 ? static_cast<size_t>(gone) : 0;
}

Octets RawPeer::Receive(size_t count) {
  Octets out(count);
  size_t have = 0;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (have < count && std::chrono::steady_clock::now() < end) {
    pump_();
    const ssize_t got = recv(socket_, out.data() + have, count - have, MSG_DONTWAIT);
    if (got > 0) have += static_cast<size_t>(got);
    if (got == 0 || (got < 0 && errno != EAGAIN)) break;
  }
  out.resize(have);
  return out;
}

std::optional<RawSegment> RawPeer::ReceiveSegment() {
  const Octets length = Receive(2);
  if (length.size() != 2) return std::nullopt;
  const size_t ulpdu_bytes = NumberAt(length, 0, 2);
  const size_t pad = (4 - (2 + ulpdu_bytes) % 4) % 4;
  const Octets rest = Receive(ulpdu_bytes + pad + 4);
  if (rest.size() != ulpdu_bytes + pad + 4) return std::nullopt;
  RawSegment segment;
  const uint32_t crc = BitwiseCrc32c(length + Slice(rest, 0, ulpdu_bytes + pad));
  const Octets sum = Slice(rest, ulpdu_bytes + pad, rest.size());
  segment.sum_is_right = sum[0] == (crc & 0xff) && sum[1] == ((crc >> 8) & 0xff) &&
                         sum[2] == ((crc >> 16) & 0xff) && sum[3] == (crc >> 24);
  if (ulpdu_bytes == 0) return segment;
  segment.tagged = (rest[0] & 0x80) != 0;
  segment.last = (rest[0] & 0x40) != 0;
  segment.opcode = rest[1] & 0x0f;
  segment.tag_or_word = static_cast<uint32_t>(NumberAt(rest, 2, 4));
  segment.offset = segment.tagged ? NumberAt(rest, 6, 8) : NumberAt(rest, 14, 4);
  if (!segment.tagged) {
    segment.queue = static_cast<uint32_t>(NumberAt(rest, 6, 4));
    segment.sequence = static_cast<uint32_t>(NumberAt(rest, 10, 4));
  }
  segment.payload = Slice(rest, segment.tagged ? 14 : 18, ulpdu_bytes);
  return segment;
}

bool RawPeer::HasMore() {
  uint8_t byte = 0;
  return recv(socket_, &byte, 1, MSG_DONTWAIT | MSG_PEEK) > 0;
}

bool RawPeer::ReceiveEnd() {
  Octets bytes(65536);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < end) {
    pump_();
    const ssize_t got = recv(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got == 0) return true;
    if (got < 0 && errno != EAGAIN) return false;
  }
  return false;
}

void RawPeer::EndWrites() { shutdown(socket_, SHUT_WR); }

void RawPeer::Close() {
  if (socket_ >= 0) close(std::exchange(socket_, -1));
  if (listener_ >= 0) close(std::exchange(listener_, -1));
}

void RawPeer::Reset() {
  const linger none{.l_onoff = 1, .l_linger = 0};
  setsockopt(socket_, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
  Close();
}

}  // namespace esdp::fabric::qpip
