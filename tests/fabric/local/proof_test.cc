// Who has shown that it may read the memory of a peer reads what the peer shows by itself.

#include <array>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "impl/fabric/local/local_fabric.h"
#include "tests/fabric/local/raw_end.h"

namespace esdp::fabric::local {
namespace {

constexpr size_t kBytes = 2 << 20;

struct Side {
  explicit Side(bool reads_peers) {
    LocalOptions options;
    options.reads_peers = reads_peers;
    fabric = *MakeLocalFabric(options);
    region = *fabric->Register(memory.data(), memory.size(),
                               {.local_write = true, .remote_read = true, .remote_write = true});
  }
  ScatterEntry All() { return {region, memory.data(), static_cast<uint32_t>(memory.size())}; }

  std::vector<std::byte> memory = std::vector<std::byte>(kBytes);
  std::unique_ptr<Fabric> fabric;
  RegionId region = RegionId::kNone;
  QueuePairId queue_pair = QueuePairId::kNone;
};

class ProofTest : public ::testing::Test {
 protected:
  void Connect(bool reader_reads, bool source_lets) {
    reader_ = std::make_unique<Side>(reader_reads);
    source_ = std::make_unique<Side>(source_lets);
    for (size_t i = 0; i < kBytes; ++i)
      source_->memory[i] = static_cast<std::byte>(i * 31 + i / 99);
    const ListenerId listener = *source_->fabric->Listen(Loopback(), 8);
    reader_->queue_pair = *reader_->fabric->CreateQueuePair({});
    source_->queue_pair = *source_->fabric->CreateQueuePair({});
    ASSERT_TRUE(reader_->fabric
                    ->Connect(reader_->queue_pair, Address{},
                              *source_->fabric->ListenerAddress(listener), {}, kTimeInfinite)
                    .ok());
    int established = 0;
    for (int i = 0; i < 1000 && established < 2; ++i) {
      for (const auto& side : {reader_.get(), source_.get()}) {
        (void)side->fabric->Poll({});
        RendezvousEvent event;
        while (side->fabric->PollRendezvous(event)) {
          established += event.type == RendezvousType::kEstablished;
          if (event.type != RendezvousType::kConnectRequest) continue;
          ASSERT_TRUE(side->fabric->Accept(event.request, side->queue_pair, {}).ok());
        }
      }
    }
    ASSERT_EQ(established, 2);
    shown_ = *source_->fabric->Bind(source_->queue_pair, source_->region, source_->memory.data(),
                                    kBytes, {.remote_read = true});
  }

  void PostRead() {
    const ScatterEntry entry = reader_->All();
    SendWork read{.opcode = Opcode::kRead, .entries = &entry, .entry_count = 1, .remote = shown_};
    ASSERT_TRUE(reader_->fabric->PostSend(reader_->queue_pair, {&read, 1}).ok());
  }
  // Whether the read completes with nobody at work but the reader, or with both.
  bool Completes(bool both) {
    std::array<Completion, 4> completions;
    for (int i = 0; i < 2000; ++i) {
      if (both) (void)source_->fabric->Poll({});
      if (reader_->fabric->Poll(absl::MakeSpan(completions)) == 0) continue;
      status_ = completions[0].status;
      return true;
    }
    return false;
  }

  std::unique_ptr<Side> reader_;
  std::unique_ptr<Side> source_;
  RemoteRange shown_;
  WorkStatus status_ = WorkStatus::kTransport;
};

TEST_F(ProofTest, WithProofAReadNeedsNoHelpOfThePeer) {
  ASSERT_NO_FATAL_FAILURE(Connect(true, true));
  ASSERT_NO_FATAL_FAILURE(PostRead());
  EXPECT_TRUE(Completes(/*both=*/false));
  EXPECT_EQ(status_, WorkStatus::kSuccess);
  EXPECT_TRUE(reader_->memory == source_->memory);
}

TEST_F(ProofTest, WhereEitherSideIsAgainstItThePeerIsAsked) {
  for (const bool reader : {true, false}) {
    ASSERT_NO_FATAL_FAILURE(Connect(reader, !reader));
    ASSERT_NO_FATAL_FAILURE(PostRead());
    EXPECT_FALSE(Completes(/*both=*/false));
    EXPECT_TRUE(Completes(/*both=*/true));
    EXPECT_EQ(status_, WorkStatus::kSuccess);
    EXPECT_TRUE(reader_->memory == source_->memory);
  }
}

TEST_F(ProofTest, AReadComesAfterTheWritesBeforeIt) {
  ASSERT_NO_FATAL_FAILURE(Connect(true, true));
  const RemoteRange written = *source_->fabric->Bind(
      source_->queue_pair, source_->region, source_->memory.data(), kBytes, {.remote_write = true});
  std::memset(reader_->memory.data(), 0x5a, 64);
  const ScatterEntry entry{reader_->region, reader_->memory.data(), 64};
  SendWork write{.opcode = Opcode::kWrite, .entries = &entry, .entry_count = 1, .remote = written};
  ASSERT_TRUE(reader_->fabric->PostSend(reader_->queue_pair, {&write, 1}).ok());
  ASSERT_NO_FATAL_FAILURE(PostRead());
  std::array<Completion, 4> completions;
  for (size_t done = 0; done < 2;) {
    (void)source_->fabric->Poll({});
    done += reader_->fabric->Poll(absl::MakeSpan(completions));
  }
  EXPECT_EQ(reader_->memory[63], std::byte{0x5a});
  EXPECT_TRUE(reader_->memory == source_->memory);
}

TEST_F(ProofTest, AWithdrawnWindowIsRefusedAsEver) {
  ASSERT_NO_FATAL_FAILURE(Connect(true, true));
  SendWork invalidate{.opcode = Opcode::kInvalidate, .remote = {}, .invalidate_key = shown_.key};
  ASSERT_TRUE(source_->fabric->PostSend(source_->queue_pair, {&invalidate, 1}).ok());
  ASSERT_NO_FATAL_FAILURE(PostRead());
  EXPECT_TRUE(Completes(/*both=*/true));
  EXPECT_EQ(status_, WorkStatus::kRemoteAccess);
  EXPECT_EQ(reader_->memory[0], std::byte{0});
}

}  // namespace
}  // namespace esdp::fabric::local
