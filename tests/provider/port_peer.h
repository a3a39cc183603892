#ifndef ESDP_TESTS_PROVIDER_PORT_PEER_H_
#define ESDP_TESTS_PROVIDER_PORT_PEER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "impl/fabric/port.h"
#include "impl/sdp/wire/messages.h"

namespace esdp::provider {

// A peer that is no library: a queue pair of the port in a test's hands. It says what the test
// wants said, in SDP, and reads and writes where the test wants. Not thread-safe.
class PortPeer {
 public:
  // Moves the world until `done`; false when the bound has passed.
  using RunUntil = std::function<bool(const std::function<bool()>& done)>;

  struct Arrived {
    sdp::wire::Message message;
    std::vector<std::byte> payload;
    std::optional<uint32_t> invalidated_key;
  };

  PortPeer(std::unique_ptr<fabric::Fabric> fabric, RunUntil run_until);
  ~PortPeer();
  PortPeer(const PortPeer&) = delete;
  PortPeer& operator=(const PortPeer&) = delete;

  // Shakes hands as an honest peer would, and says the first word.
  bool Connect(const fabric::Address& server, uint8_t max_adverts);

  // The next message with a meaning beyond credits.
  std::optional<Arrived> Next();
  void Say(const sdp::wire::Body& body, uint32_t payload_bytes = 0,
           std::optional<uint32_t> invalidate_key = std::nullopt);

  // How the work ended. What a read brings stands in read_bytes() from the front.
  fabric::WorkStatus Read(const fabric::RemoteRange& from, uint32_t length);
  fabric::WorkStatus Write(const fabric::RemoteRange& to, uint32_t length);
  const std::vector<std::byte>& read_bytes() const { return read_bytes_; }

  // Nothing while the connection lasts.
  std::optional<fabric::Cause> ended();
  std::optional<fabric::Cause> WaitForEnd();

 private:
  static constexpr uint32_t kBuffers = 16;
  static constexpr uint32_t kBufferBytes = 4096;

  void Poll();
  void Take(const fabric::Completion& completion);
  void PostReceive(uint64_t buffer);
  uint64_t Post(fabric::Opcode opcode, const fabric::ScatterEntry& entry,
                const fabric::RemoteRange& remote, std::optional<uint32_t> invalidate_key);
  fabric::WorkStatus WaitFor(uint64_t work);
  fabric::ScatterEntry Entry(std::vector<std::byte>& memory, size_t offset, uint32_t length) const;

  RunUntil run_until_;
  std::vector<std::byte> receive_bytes_, send_bytes_, read_bytes_;
  std::unique_ptr<fabric::Fabric> fabric_;
  fabric::RegionId receive_region_{}, send_region_{}, read_region_{};
  fabric::QueuePairId queue_pair_ = fabric::QueuePairId::kNone;
  uint64_t next_work_ = 1000;
  std::map<uint64_t, fabric::WorkStatus> done_;
  std::deque<Arrived> arrived_;
  uint32_t last_sent_ = 0, last_received_ = 0;
  bool established_ = false;
  std::optional<fabric::Cause> ended_;
};

}  // namespace esdp::provider

#endif  // ESDP_TESTS_PROVIDER_PORT_PEER_H_
