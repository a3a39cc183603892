#include <array>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <vector>

#include "esdp/context.h"
#include "gtest/gtest.h"

// An exception between a post and its event: three ways in which nothing is received into memory
// that is gone, as docs/start_to_end.md shows them. The address sanitizer says whether it is so.

namespace esdp {
namespace {

constexpr size_t kBytes = 256 * 1024;

// Bytes of a scope, given back only when no operation uses them any more, however the scope is
// left. The sockets that use them are declared behind them, so that they are gone, and their
// connections with them, when this waits.
class ScopedBytes {
 public:
  ScopedBytes(Context& context, size_t length)
      : bytes_(length), region_(context.Register(std::span(bytes_)).value()) {}
  ~ScopedBytes() { (void)region_.Close(absl::InfiniteFuture()); }
  ScopedBytes(const ScopedBytes&) = delete;
  ScopedBytes& operator=(const ScopedBytes&) = delete;
  Slice slice() const { return region_.slice(); }

 private:
  std::vector<std::byte> bytes_;
  Region region_;
};

Event Next(EventQueue& queue) {
  std::array<Event, 1> event;
  EXPECT_TRUE(queue.Dequeue(std::span(event)).ok());
  return event[0];
}

// What sends to whoever fails: more than one receive takes, so that it goes on meanwhile.
class UnwindingTest : public ::testing::Test {
 protected:
  Socket TakeFromPeer(Context& context, EventQueue& queue) {
    Socket listener = context.CreateSocket(Family::kIpv4).value();
    EXPECT_TRUE(listener.Bind(Address::Loopback(Family::kIpv4, 0)).ok());
    EXPECT_TRUE(listener.Listen(1).ok());
    listener.Accept(1, {queue}).value();
    socket_.Connect(listener.local(), {queue_}).value();
    EXPECT_TRUE(Next(queue_).ok());
    for (int i = 0; i < 4; ++i) socket_.Send(region_.slice(), SendFlags::kNone, {queue_}).value();
    return context.TakeAccepted(Next(queue).accepted).value();
  }

  std::vector<std::byte> bytes_ = std::vector<std::byte>(kBytes);
  Context context_ = Context::Open({.fabric = "qpip"}).value();
  EventQueue queue_ = context_.CreateQueue({}).value();
  Region region_ = context_.Register(std::span(bytes_)).value();
  Socket socket_ = context_.CreateSocket(Family::kIpv4).value();
};

[[noreturn]] void Fail() { throw std::runtime_error("between a post and its event"); }

TEST_F(UnwindingTest, BytesOfARegionStayAsLongAsAnOperationUsesThem) {
  Context context = Context::Open({.fabric = "qpip"}).value();
  EventQueue queue = context.CreateQueue({}).value();
  const auto serve = [&] {
    Socket socket = TakeFromPeer(context, queue);
    const Region region = context.Allocate(kBytes).value();
    socket.Recv(region.slice(), RecvFlags::kWaitAll, {queue}).value();
    Fail();
  };
  EXPECT_THROW(serve(), std::runtime_error);
  EXPECT_EQ(Next(queue).type, EventType::kRecv);
}

TEST_F(UnwindingTest, BytesOfAScopeAreWaitedFor) {
  Context context = Context::Open({.fabric = "qpip"}).value();
  EventQueue queue = context.CreateQueue({}).value();
  const auto serve = [&] {
    const ScopedBytes bytes(context, kBytes);
    Socket socket = TakeFromPeer(context, queue);
    socket.Recv(bytes.slice(), RecvFlags::kWaitAll, {queue}).value();
    Fail();
  };
  EXPECT_THROW(serve(), std::runtime_error);
  EXPECT_EQ(context.Stats().regions, 0u);
  EXPECT_EQ(Next(queue).type, EventType::kRecv);
}

TEST_F(UnwindingTest, BytesThatAreDeclaredBeforeTheContextOutliveIt) {
  const auto run = [&] {
    std::vector<std::byte> bytes(kBytes);
    Context context = Context::Open({.fabric = "qpip"}).value();
    EventQueue queue = context.CreateQueue({}).value();
    Socket socket = TakeFromPeer(context, queue);
    socket.RecvCopy(std::span(bytes), RecvFlags::kWaitAll, {queue}).value();
    Fail();
  };
  EXPECT_THROW(run(), std::runtime_error);
}

}  // namespace
}  // namespace esdp
