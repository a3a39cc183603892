#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "esdp/context.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"
#include "tests/sockets/raw_stream.h"

// What a fabric ends by itself has ended for the peer too, though a child of fork() that lives on
// has a copy of the descriptor.

namespace esdp::contract {
namespace {

// Lives, and holds copies of all descriptors, until it goes.
class Child {
 public:
  Child() : child_(fork()) {
    if (child_ != 0) return;
    alarm(60);
    pause();
    _exit(0);
  }
  ~Child() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

 private:
  const pid_t child_;
};

class ForkEndTest : public PairTest {
 protected:
  RawStream raw_{[this](const std::function<bool()>& done) { return Pump(done); }};
};
ESDP_ON_TCP_WORLDS(ForkEndTest);

TEST_P(ForkEndTest, ARequestThatIsNone) {
  (void)Listen();
  ASSERT_TRUE(raw_.Connect(listener_.local().port()));
  raw_.Write({0});  // it has been taken from the system when this is read
  Settle();
  const Child child;
  raw_.Write(Garbage(1, 100));
  EXPECT_TRUE(raw_.WaitForEnd());
}

TEST_P(ForkEndTest, AConnectionThatIsRefused) {
  (void)Listen();
  const OpId accept = server_.Accepted(listener_.Accept(1, server_.Args()));
  ASSERT_TRUE(raw_.Connect(listener_.local().port()));
  raw_.Write(MpaRequest(HonestHello()));
  raw_.Write(SendFrame(SdpMessage(0xff, 1), 1));
  server_.socket = *server_.context.TakeAccepted(End(server_, accept).accepted);
  Settle();
  const Child child;
  raw_.Write(Garbage(2, 1000));  // no frame: it is told so, and that is the end
  EXPECT_TRUE(raw_.WaitForEnd());
}

TEST_P(ForkEndTest, AListenerThatIsClosed) {
  (void)Listen();
  const uint16_t port = listener_.local().port();
  const Child child;
  listener_ = {};
  Settle();
  EXPECT_FALSE(raw_.Connect(port));
}

}  // namespace
}  // namespace esdp::contract
