#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "esdp/context.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// Accepted connections that nobody takes: each ends, so that its peer does not wait for ever.

namespace esdp::contract {
namespace {

constexpr absl::Duration kWithin = absl::Seconds(1);
constexpr absl::Duration kLonger = absl::Seconds(2);

class UntakenTest : public PairTest {
 protected:
  void Open(absl::Duration within) {
    ContextOptions options = OptionsOf(world());
    options.take_accepted_within = within;
    options.log = [log = log_](std::string_view line) {
      const std::lock_guard lock(log->mutex);
      log->text += line;
    };
    client_ = Side();  // of the world of the other one
    server_ = Side();
    ASSERT_NO_FATAL_FAILURE(server_.Open(options));
    ASSERT_NO_FATAL_FAILURE(client_.Open(OptionsOf(world(), &server_.context)));
  }
  enum class Then { kDrop, kTake };
  // A connection whose event is delivered to `queue`; the client has a receive outstanding.
  void ConnectFrom(EventQueue& queue, Then then = Then::kDrop) {
    address_ = Listen();
    if (&queue == &server_.queue) {
      (void)server_.Accepted(listener_.Accept(1, server_.Args()));
    } else {
      ASSERT_TRUE(listener_.Accept(1, {queue}).ok());
    }
    client_.socket = *client_.context.CreateSocket(Family::kIpv4);
    const OpId connect = client_.Accepted(client_.socket.Connect(address_, client_.Args()));
    // Moves both sides, as it looks after them.
    ASSERT_TRUE(Pump([&] { return queue.Stats().waiting > 0 || TakesFrom(queue); }));
    if (then == Then::kTake) server_.socket = *server_.context.TakeAccepted(Accepted().accepted);
    ASSERT_TRUE(End(client_, connect).ok());
    receive_ = client_.Recv(Make(client_, 1).All());
  }
  bool TakesFrom(EventQueue& queue) { return &queue == &server_.queue && !server_.events.empty(); }
  Event Accepted() { return Next(server_); }
  bool HasEnded(absl::Duration bound) {
    return Pump([&] { return client_.Find(receive_) != nullptr; }, bound);
  }
  void ExpectPeerReset() {
    ASSERT_TRUE(HasEnded(absl::Seconds(20)));
    EXPECT_EQ(End(client_, receive_).kind, ErrorKind::kPeerReset);
  }

  bool HasLogged(const std::string& text) {
    const std::lock_guard lock(log_->mutex);
    return log_->text.find(text) != std::string::npos;
  }

  struct Log {
    std::mutex mutex;
    std::string text;
  };
  const std::shared_ptr<Log> log_ = std::make_shared<Log>();  // the context lives longer than this
  Address address_;
  OpId receive_ = OpId::kNone;
};
ESDP_ON_EVERY_WORLD(UntakenTest);

TEST_P(UntakenTest, OneWhoseEventWasDroppedIsAbortedAndThatIsTold) {
  ASSERT_NO_FATAL_FAILURE(Open(kWithin));
  ASSERT_NO_FATAL_FAILURE(ConnectFrom(server_.queue));
  const Event accepted = Accepted();
  ExpectPeerReset();
  EXPECT_TRUE(Refuses(server_.context.TakeAccepted(accepted.accepted), ErrorKind::kBadHandle,
                      absl::StatusCode::kNotFound));
  EXPECT_TRUE(Pump([&] { return HasLogged("TakeAccepted"); }));
  EXPECT_EQ(server_.context.Stats().accepts_given_up, 1u);
}

TEST_P(UntakenTest, OneThatIsTakenStays) {
  ASSERT_NO_FATAL_FAILURE(Open(kWithin));
  ASSERT_NO_FATAL_FAILURE(ConnectFrom(server_.queue, Then::kTake));
  EXPECT_FALSE(HasEnded(kLonger));
  server_.Send(Make(server_, 1).All());
  EXPECT_TRUE(End(client_, receive_).ok());
  EXPECT_EQ(server_.context.Stats().accepts_given_up, 0u);
}

TEST_P(UntakenTest, TheTimeOfOneWhoseEventWaitsInTheQueueHasNotBegun) {
  ASSERT_NO_FATAL_FAILURE(Open(kWithin));
  EventQueue unread = *server_.context.CreateQueue({});
  ASSERT_NO_FATAL_FAILURE(ConnectFrom(unread));
  EXPECT_FALSE(HasEnded(kLonger));
  std::array<Event, 1> one;
  ASSERT_EQ(unread.TryDequeue(absl::MakeSpan(one)).value_or(0), 1u);
  server_.socket = *server_.context.TakeAccepted(one[0].accepted);
  server_.Send(Make(server_, 1).All());
  EXPECT_TRUE(End(client_, receive_).ok());
}

TEST_P(UntakenTest, OneWhoseQueueIsClosedWithItsEventIsAborted) {
  ASSERT_NO_FATAL_FAILURE(Open(absl::InfiniteDuration()));
  EventQueue unread = *server_.context.CreateQueue({});
  ASSERT_NO_FATAL_FAILURE(ConnectFrom(unread));
  ASSERT_TRUE(unread.Close().ok());
  ExpectPeerReset();
}

TEST_P(UntakenTest, OneWhoseQueueIsDestroyedWithItsEventIsAborted) {
  ASSERT_NO_FATAL_FAILURE(Open(absl::InfiniteDuration()));
  EventQueue unread = *server_.context.CreateQueue({});
  ASSERT_NO_FATAL_FAILURE(ConnectFrom(unread));
  unread = EventQueue();
  ExpectPeerReset();
}

TEST_P(UntakenTest, ATimeThatIsNoneIsRefused) {
  ContextOptions options = OptionsOf(world());
  options.take_accepted_within = absl::ZeroDuration();
  EXPECT_TRUE(Refuses(Context::Open(options), ErrorKind::kInvalidArgument,
                      absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace esdp::contract
