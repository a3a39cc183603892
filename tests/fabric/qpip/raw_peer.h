#ifndef ESDP_TESTS_FABRIC_QPIP_RAW_PEER_H_
#define ESDP_TESTS_FABRIC_QPIP_RAW_PEER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

// A peer that speaks bytes: it shares no code with qpip, so that both cannot be wrong together. It
// says whatever a test wants it to say.

namespace esdp::fabric::qpip {

using Octets = std::vector<uint8_t>;

Octets operator+(Octets a, const Octets& b);
Octets Text(const std::string& text);
Octets Number(uint64_t value, size_t bytes);  // big-endian
uint32_t BitwiseCrc32c(const Octets& bytes);

// --- frames ---

struct RawStartup {
  std::string key = "MPA ID Req Frame";
  uint8_t flags = 0x10;
  uint8_t revision = 2;
  std::optional<Octets> words = Octets{0, 4, 0, 4};  // IRD 4, ORD 4, no ready-to-receive frame
  Octets data{};
  std::optional<uint16_t> length{};  // if it is not to be the truth
};
Octets Startup(const RawStartup& startup);

// The control byte's other values are for tests of what must be refused.
Octets Tagged(uint8_t opcode, uint32_t tag, uint64_t offset, const Octets& payload,
              bool last = true, uint8_t ddp_version = 1, uint8_t rdmap_version = 1);
struct RawUntagged {
  uint8_t opcode = 3;
  uint32_t word = 0;
  uint32_t queue = 0;
  uint32_t sequence = 1;
  uint32_t offset = 0;
  bool last = true;
  uint8_t ddp_version = 1;
  uint8_t rdmap_version = 1;
};
Octets Untagged(const RawUntagged& header, const Octets& payload);
Octets ReadRequestOf(uint32_t sink, uint64_t sink_offset, uint32_t length, uint32_t source,
                     uint64_t source_offset);
// Puts a frame round a ULPDU. Without a sum the four bytes are zero.
Octets Frame(const Octets& ulpdu, bool summed = false);

// A frame taken apart.
struct RawSegment {
  bool tagged = false;
  bool last = false;
  uint8_t opcode = 0;
  uint32_t tag_or_word = 0;
  uint64_t offset = 0;
  uint32_t queue = 0;
  uint32_t sequence = 0;
  Octets payload;
  bool sum_is_right = false;
};

// --- the socket ---

class RawPeer {
 public:
  // Called while the peer waits: lets the fabric under test work.
  using Pump = std::function<void()>;

  explicit RawPeer(Pump pump) : pump_(std::move(pump)) {}
  ~RawPeer() { Close(); }
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  bool Connect(uint16_t port, bool ipv6 = false);
  // Listens, and tells where; then takes the one connection.
  uint16_t Listen();
  bool Accept();

  bool Send(const Octets& bytes);
  // Sends what the socket takes at once, and lets nobody work: how much that was.
  size_t Offer(const Octets& bytes, size_t from = 0);
  // The next `count` bytes; fewer if the stream ends or none come for a while.
  Octets Receive(size_t count);
  std::optional<RawSegment> ReceiveSegment();
  bool HasMore();
  // Reads to the end; true if the stream was closed in order, false if it was reset or went on.
  bool ReceiveEnd();
  void EndWrites();
  void Close();
  void Reset();

 private:
  Pump pump_;
  int listener_ = -1;
  int socket_ = -1;
};

}  // namespace esdp::fabric::qpip

#endif  // ESDP_TESTS_FABRIC_QPIP_RAW_PEER_H_
