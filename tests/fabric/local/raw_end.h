#ifndef ESDP_TESTS_FABRIC_LOCAL_RAW_END_H_
#define ESDP_TESTS_FABRIC_LOCAL_RAW_END_H_

#include <dirent.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "impl/fabric/local/channel.h"
#include "impl/fabric/local/handshake.h"
#include "impl/fabric/local/layout.h"
#include "impl/fabric/local/local_fabric.h"
#include "impl/fabric/local/local_socket.h"
#include "impl/fabric/port.h"

namespace esdp::fabric::local {

inline Address Loopback() {
  Address address;
  address.bytes[12] = 127;
  address.bytes[15] = 1;
  return address;
}

inline size_t OpenDescriptors() {
  size_t count = 0;
  DIR* const folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

// A peer of a fabric that has read the layout of a block and writes into its own what it likes.
struct RawEnd {
  Descriptor socket;
  WritableMemory memory;

  Block& block() { return *reinterpret_cast<Block*>(memory.mapping.base()); }
};

// A fabric that listens, with memory that is shown to one peer and memory that is shown to nobody.
class Victim {
 public:
  static constexpr size_t kBytes = 64 * 1024;
  static constexpr size_t kShown = 4096;  // in the middle
  static constexpr uint32_t kReceived = 2000;

  Victim() : fabric_(*MakeLocalFabric()) {
    listener_ = *fabric_->Listen(Loopback(), 64);
    address_ = *fabric_->ListenerAddress(listener_);
    region_ = *fabric_->Register(memory_.data(), memory_.size(),
                                 {.local_write = true, .remote_read = true, .remote_write = true});
  }

  Fabric& fabric() { return *fabric_; }
  const Address& address() const { return address_; }
  QueuePairId queue_pair() const { return queue_pair_; }
  RemoteRange shown() const { return shown_; }
  bool ended() const { return ended_; }
  uint32_t requests() const { return requests_; }
  bool has_been_lent() const { return lent_bytes_ != 0; }

  static Hello Request(const Address& to) {
    Hello hello;
    hello.initiator_depth = hello.responder_resources = 4;
    hello.to = ToHello(to);
    hello.from = ToHello(to);
    hello.from.port = 50'000;
    return hello;
  }

  // A connection to a raw end, with receives posted, reads under way and a window.
  RawEnd Meet() {
    RawEnd end;
    end.socket = ConnectTo(address_).socket;
    end.memory = *Channel::MakeBlock();
    EXPECT_TRUE(SendHello(end.socket.number(), Request(address_), &end.memory.file));
    accepts_ = true;
    ended_ = false;
    for (int i = 0; i < 100 && accepts_; ++i) Poll();
    EXPECT_FALSE(accepts_);
    Hello answer;
    Descriptor block;
    EXPECT_EQ(ReceiveHello(end.socket.number(), answer, block), HelloOutcome::kDone);
    std::array<ScatterEntry, 1> entry{{{region_, memory_.data(), kReceived}}};
    for (uint64_t i = 0; i < 8; ++i) {
      const ReceiveWork receive{i, entry.data(), 1};
      EXPECT_TRUE(fabric_->PostReceive(queue_pair_, {&receive, 1}).ok());
    }
    shown_ = *fabric_->Bind(queue_pair_, region_, memory_.data() + kBytes / 2, kShown,
                            {.remote_read = true, .remote_write = true});
    SendWork read{.opcode = Opcode::kRead, .entries = entry.data(), .entry_count = 1, .remote = {}};
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(fabric_->PostSend(queue_pair_, {&read, 1}).ok());
    return end;
  }

  // One look, with whatever it brings. A receive that was filled is posted again, what is lent read.
  void Poll() {
    std::array<Completion, 16> completions;
    const size_t count = fabric_->Poll(absl::MakeSpan(completions));
    const std::array<ScatterEntry, 1> entry{{{region_, memory_.data(), kReceived}}};
    for (size_t i = 0; i < count; ++i) {
      const ReceiveWork receive{i, entry.data(), 1};
      if (completions[i].opcode == Opcode::kReceive) {
        (void)fabric_->PostReceive(queue_pair_, {&receive, 1});
      }
      if (completions[i].lent == nullptr) continue;
      const ConstBytes lent(completions[i].lent, completions[i].byte_length);
      lent_bytes_ += static_cast<size_t>(std::ranges::count(lent, std::byte{0})) + 1;
      if (i % 2 == 0) fabric_->ReturnLent(completions[i].queue_pair);
    }
    RendezvousEvent event;
    while (fabric_->PollRendezvous(event)) {
      ended_ = ended_ || event.type == RendezvousType::kDisconnected;
      if (event.type != RendezvousType::kConnectRequest) continue;
      ++requests_;
      if (!std::exchange(accepts_, false)) continue;
      if (queue_pair_ != QueuePairId::kNone) {
        EXPECT_TRUE(fabric_->DestroyQueuePair(queue_pair_).ok());
      }
      QueuePairOptions options;
      options.lend_messages = requests_ % 2 == 0;
      queue_pair_ = *fabric_->CreateQueuePair(options);
      EXPECT_TRUE(fabric_->Accept(event.request, queue_pair_, {}).ok());
    }
  }

  // Only the first bytes, which are received into, and those that are shown may have changed.
  bool NothingElseHasChanged() const {
    const auto is_clear = [this](size_t from, size_t to) {
      return std::all_of(memory_.begin() + static_cast<ptrdiff_t>(from),
                         memory_.begin() + static_cast<ptrdiff_t>(to),
                         [](std::byte byte) { return byte == std::byte{0}; });
    };
    return is_clear(kReceived, kBytes / 2) && is_clear(kBytes / 2 + kShown, kBytes);
  }

 private:
  std::vector<std::byte> memory_ = std::vector<std::byte>(kBytes);
  std::unique_ptr<Fabric> fabric_;
  ListenerId listener_ = ListenerId::kNone;
  Address address_;
  RegionId region_ = RegionId::kNone;
  QueuePairId queue_pair_ = QueuePairId::kNone;
  RemoteRange shown_;
  bool accepts_ = false;
  bool ended_ = false;
  uint32_t requests_ = 0;
  size_t lent_bytes_ = 0;
};

}  // namespace esdp::fabric::local

#endif  // ESDP_TESTS_FABRIC_LOCAL_RAW_END_H_
