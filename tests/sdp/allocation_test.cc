#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <vector>

#include "impl/base/ring.h"
#include "impl/sdp/connection.h"
#include "tests/sdp/pair.h"

// Counts every allocation of this program.

namespace {

size_t g_allocations = 0;

}  // namespace

void* operator new(size_t bytes) {
  ++g_allocations;
  if (void* memory = std::malloc(bytes); memory != nullptr) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace esdp::sdp {
namespace {

// Two cores with nothing between them: what one sends the other has received.
class Wire {
 public:
  Wire() : a_(testing::SmallConfig(true)), b_(testing::SmallConfig(false)) {
    Feed(a_, b_, AskConnect{});
  }

  // Steps nest: each depth has a list of its own, and keeps it.
  void Feed(Connection& to, Connection& peer, const Input& input) {
    if (depth_ == actions_.size()) actions_.emplace_back();
    const size_t mine = depth_++;
    to.Step(input, Time{}, actions_[mine]);
    for (size_t i = 0; i < actions_[mine].size(); ++i) {
      const Action action = actions_[mine][i];
      Do(to, peer, action);
    }
    --depth_;
  }

  void Exchange(uint32_t bytes, bool zero_copy) {
    AskReceive receive;
    receive.piece = {OperationId{next_}, bytes, 0};
    receive.placeable = true;
    receive.wait_all = true;
    receive.zcopy_min = zero_copy ? 0 : Config::kNever;
    Feed(b_, a_, receive);
    AskSend send;
    send.piece = {OperationId{next_++}, bytes, 0};
    send.exposable = true;
    send.zcopy_min = receive.zcopy_min;
    Feed(a_, b_, send);
  }

  size_t finished = 0;
  const Connection& b() const { return b_; }

 private:
  void Do(Connection& from, Connection& peer, const Action& action) {
    const bool is_a = &from == &a_;
    if (const auto* start = std::get_if<StartConnect>(&action)) {
      Feed(peer, from, HelloArrived{start->hello});
    } else if (const auto* accept = std::get_if<AcceptConnection>(&action)) {
      Feed(peer, from, Established{accept->hello_ack, 4, 4});
      Feed(from, peer, Established{std::nullopt, 4, 4});
    } else if (const auto* post = std::get_if<PostReceive>(&action)) {
      (is_a ? posted_a_ : posted_b_).PushBack(post->buffer);
    } else if (const auto* send = std::get_if<Send>(&action)) {
      uint32_t payload = send->copied_bytes;
      for (uint32_t i = 0; i < send->gather_count; ++i) payload += send->gather[i].length;
      MessageArrived arrived{send->message, (is_a ? posted_b_ : posted_a_).TakeFront(), 16, payload,
                             send->invalidate_key};
      Feed(peer, from, arrived);
      Feed(from, peer, SendFinished{});
    } else if (std::holds_alternative<Read>(action)) {
      Feed(from, peer, ReadFinished{});
    } else if (const auto* expose = std::get_if<Expose>(&action)) {
      Feed(from, peer, Exposed{expose->advert, {7, 0}});
    } else if (const auto* withdraw = std::get_if<Withdraw>(&action)) {
      Feed(from, peer, Withdrawn{withdraw->advert});
    } else if (std::holds_alternative<FinishOperation>(action)) {
      ++finished;
    }
  }

  Connection a_, b_;
  std::vector<Actions> actions_;
  size_t depth_ = 0;
  GrowingRing<ReceiveBuffer> posted_a_, posted_b_;
  uint32_t next_ = 1;
};

void ExpectNoAllocations(uint32_t bytes, bool zero_copy) {
  Wire wire;
  for (int i = 0; i < 200; ++i) wire.Exchange(bytes, zero_copy);
  const size_t before = g_allocations;
  const size_t finished = wire.finished;

  for (int i = 0; i < 1000; ++i) wire.Exchange(bytes, zero_copy);

  EXPECT_EQ(wire.finished - finished, 2000u);
  EXPECT_EQ(g_allocations - before, 0u);
  EXPECT_EQ(wire.b().counters().bytes_received_zero_copy > 0, zero_copy);
}

TEST(AllocationTest, CopiedTransfersAllocateNothingInSteadyState) {
  ExpectNoAllocations(100, false);
}

TEST(AllocationTest, GatheredTransfersAllocateNothingInSteadyState) {
  ExpectNoAllocations(800, false);
}

TEST(AllocationTest, ZeroCopyTransfersAllocateNothingInSteadyState) {
  ExpectNoAllocations(100'000, true);
}

}  // namespace
}  // namespace esdp::sdp
