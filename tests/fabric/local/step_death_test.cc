// A peer that dies between two instructions of its own: each of them is a place where another store, another
// wake-up or another piece of a message is still to come.

#include <sys/ptrace.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "impl/base/random.h"
#include "tests/fabric/local/survivor.h"

namespace esdp::fabric::local {
namespace {

uint64_t NumberOf(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// A child whose instructions are done one by one, by this thread.
class Stepped {
 public:
  explicit Stepped(pid_t child) : child_(child) {
    stopped_ = ptrace(PTRACE_SEIZE, child, nullptr, nullptr) == 0 &&
               ptrace(PTRACE_INTERRUPT, child, nullptr, nullptr) == 0 && AwaitStop();
  }
  bool stopped() const { return stopped_; }
  // False: it has ended.
  bool Step() {
    return stopped_ && ptrace(PTRACE_SINGLESTEP, child_, nullptr, nullptr) == 0 && AwaitStop();
  }

 private:
  bool AwaitStop() const {
    int status = 0;
    return waitpid(child_, &status, __WALL) == child_ && WIFSTOPPED(status);
  }

  const pid_t child_;
  bool stopped_ = false;
};

class StepDeathTest : public DeathTest {
 protected:
  void SetUp() override {
    const pid_t child = InChild([] { return pause(); });
    const bool traced = Stepped(child).stopped();
    kill(child, SIGKILL);
    ExitOf(child);
    if (!traced) GTEST_SKIP() << "the system does not let a child be traced";
  }
  // The peer does so many more instructions, while this side goes on.
  void GoOn(pid_t peer, uint64_t instructions) {
    Stepped stepped(peer);  // unless it has ended already
    for (uint64_t i = 0; i < instructions && stepped.Step(); ++i) {
      size_t count = 0;
      if (i % 64 != 0) continue;
      ASSERT_NO_FATAL_FAILURE(TakeNow(count));
    }
  }
};

// Where exactly a peer dies is no matter: after every instruction that there is between a message and the
// next. Here some of them, of another seed each time that is wanted: ESDP_DEATHS and ESDP_SEED.
TEST_F(StepDeathTest, AfterWhicheverInstructionAPeerDiesItsMessagesAreWholeAndInOrder) {
  Random random(NumberOf("ESDP_SEED", 7));
  const uint64_t deaths = NumberOf("ESDP_DEATHS", 25);
  for (uint64_t life = 0; life < deaths; ++life) {
    BeginLife();
    const pid_t peer = InChild([this] { return SendMessages(address_, kWithoutEnd); });
    const uint64_t enough = random.Between(1, 40);
    while (received_ < enough) ASSERT_NO_FATAL_FAILURE(Take());
    const uint64_t instructions = random.Between(0, 4000);
    SCOPED_TRACE("life " + std::to_string(life));
    GoOn(peer, instructions);
    ASSERT_NO_FATAL_FAILURE(EndLife(peer));
    EXPECT_EQ(cause_, Cause::kPeerReset) << ToString(cause_);
  }
}

TEST_F(StepDeathTest, AfterWhicheverInstructionAPeerDiesThatEndsAllOrAPrefixHasCome) {
  Random random(NumberOf("ESDP_SEED", 8));
  const uint64_t deaths = NumberOf("ESDP_DEATHS", 25);
  uint64_t in_order = 0;
  for (uint64_t life = 0; life < deaths; ++life) {
    BeginLife();
    const uint64_t messages = random.Between(2, 12);
    const pid_t peer = InChild([&] { return SendMessages(address_, messages); });
    while (received_ < messages - 1) ASSERT_NO_FATAL_FAILURE(Take());
    SCOPED_TRACE("life " + std::to_string(life));
    GoOn(peer, random.Between(0, 12'000));
    ASSERT_NO_FATAL_FAILURE(EndLife(peer));
    if (cause_ == Cause::kPeerDisconnect) {
      EXPECT_EQ(received_, messages);
      ++in_order;
    } else {
      EXPECT_EQ(cause_, Cause::kPeerReset) << ToString(cause_);
    }
  }
  std::printf("%llu of %llu had disconnected in order\n", static_cast<unsigned long long>(in_order),
              static_cast<unsigned long long>(deaths));
}

}  // namespace
}  // namespace esdp::fabric::local
