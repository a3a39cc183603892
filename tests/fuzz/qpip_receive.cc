#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "impl/base/bytes.h"
#include "impl/base/ring.h"
#include "impl/fabric/qpip/inbound.h"
#include "impl/fabric/qpip/receiver.h"
#include "impl/fabric/qpip/tcp_stream.h"
#include "impl/fabric/soft/region_table.h"
#include "impl/fabric/soft/work_queue.h"

// A byte stream into qpip's receiving half: MPA, DDP and RDMAP as a peer may send them. The first
// byte says whether frames are summed, the second how the stream is cut. 0xfeedc0de stands for the
// key of a live window, 0xc0ffee00 for the sink tag of a read in flight.
//
// Whatever comes, nothing outside of what was shown is touched.

namespace esdp::fabric::qpip {
namespace {

constexpr QueuePairId kQueuePair{1};
constexpr size_t kGuardBytes = 4096;
constexpr size_t kShownBytes = 8192;
constexpr uint32_t kSinkTag = 0xc0ffee00;
constexpr std::array kWindowMarker{std::byte{0xfe}, std::byte{0xed}, std::byte{0xc0},
                                   std::byte{0xde}};
constexpr std::byte kUntouched{0xa5};

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

class Target final : private InboundEvents {
 public:
  Target() : memory_(kShownBytes + 2 * kGuardBytes, kUntouched) {
    const Access all{.local_write = true, .remote_read = true, .remote_write = true};
    region_ = *regions_.Register(shown(0), kShownBytes, all);
    key_ = regions_.Bind(kQueuePair, region_, shown(0), 2048, all)->key;
    for (size_t i = 0; i < 2; ++i) {
      const std::array entries{Entry(2048 + i * 2048, 700), Entry(3000 + i * 2048, 900)};
      receives_.PushBack({}, entries.data(), entries.size(), regions_);
    }
    const std::array entries{Entry(6144, 1000), Entry(7168, 1024)};
    sends_.PushBack({}, entries.data(), entries.size(), regions_);
    reads_.PushBack({.slot = 0, .sink_tag = kSinkTag, .length = 2024, .place = {0, 0}});
  }

  void Receive(ConstBytes input) {
    receiver_.set_checksum((input[0] & std::byte{1}) != std::byte{0});
    const size_t cut = std::to_integer<size_t>(input[1]) * 16 + 1;
    std::vector<std::byte> bytes(input.begin() + 2, input.end());
    PutKeys(bytes);
    int ends[2];
    Require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    TcpStream stream(ends[0]);
    TcpStream peer(ends[1]);
    const auto scratch = std::make_unique<ReceiveScratch>();
    for (ConstBytes rest(bytes); !rest.empty();) {
      const ConstBytes piece = rest.first(std::min(cut, rest.size()));
      rest = rest.subspan(piece.size());
      if (peer.Write(piece).bytes != piece.size()) break;
      if (receiver_.Read(stream, inbound_, *scratch, SIZE_MAX) != Receiver::Outcome::kDrained) {
        break;
      }
    }
    RequireGuardsUntouched();
  }

 private:
  std::byte* shown(size_t offset) { return memory_.data() + kGuardBytes + offset; }
  ScatterEntry Entry(size_t offset, uint32_t length) { return {region_, shown(offset), length}; }

  void PutKeys(Bytes bytes) const {
    for (size_t i = 0; i + 4 <= bytes.size(); ++i) {
      if (std::equal(kWindowMarker.begin(), kWindowMarker.end(),
                     bytes.begin() + static_cast<ptrdiff_t>(i))) {
        StoreBigEndian(bytes, i, key_);
      }
    }
  }
  void RequireGuardsUntouched() {
    for (size_t i = 0; i < kGuardBytes; ++i) {
      Require(memory_[i] == kUntouched && memory_[kGuardBytes + kShownBytes + i] == kUntouched);
    }
  }

  void OnMessage(uint64_t slot) override { Require(receives_.At(slot).received <= 1600); }
  Refusal OnReadRequest(const ReadRequest&) override { return std::nullopt; }
  void OnReadComplete() override {
    Require(reads_.front().received == reads_.front().length);
    reads_.PopFront();
  }
  void OnTerminate(const Terminate&) override {}
  Refusal OnReadySign(bool) override { return std::nullopt; }

  std::vector<std::byte> memory_;
  RegionTable regions_;
  RegionId region_{};
  uint32_t key_ = 0;
  WorkQueue<ReceiveSlot> receives_;
  WorkQueue<SendSlot> sends_;
  GrowingRing<ReadInFlight> reads_;
  Inbound inbound_{kQueuePair, regions_, receives_, sends_, reads_, *this};
  Receiver receiver_;
};

}  // namespace
}  // namespace esdp::fabric::qpip

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  esdp::fabric::qpip::Target().Receive(std::as_bytes(std::span(data, size)));
  return 0;
}
