// A system that gives no descriptor any more.

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "impl/base/time.h"
#include "tests/base/manual_clock.h"
#include "tests/fabric/qpip/qpip_fixture.h"

namespace esdp::fabric::qpip {
namespace {

// While it lives the process can open nothing.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(next);
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(next);
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

class DescriptorsTest : public QpipTest {
 protected:
  DescriptorsTest() {
    Open({.log = [this](const std::string& line) { lines_.push_back(line); }, .clock = &clock_});
  }
  void TearDown() override { fabric_.reset(); }  // before its clock
  // Long enough for several attempts.
  void PassTime() {
    for (int i = 0; i < 20; ++i) {
      clock_.Pass(std::chrono::milliseconds(50));
      Pump();
    }
  }

  ManualClock clock_;
  std::vector<std::string> lines_;
};

TEST_F(DescriptorsTest, ConnectionsThatWaitForThemAreToldOnceAndTakenOnceThereAreSome) {
  const auto waits = [] {};
  peer_ = std::make_unique<RawPeer>(waits);
  ASSERT_TRUE(peer_->Connect(Port()));
  ASSERT_TRUE(peer_->Send(Startup({})));
  {
    const NoDescriptors none;
    ASSERT_TRUE(PumpUntil([&] { return !lines_.empty(); })) << "nobody is told";
    EXPECT_NE(lines_[0].find("127.0.0.1:" + std::to_string(Port())), std::string::npos)
        << lines_[0];
    EXPECT_NE(lines_[0].find("Too many open files"), std::string::npos) << lines_[0];
    PassTime();
    EXPECT_EQ(lines_.size(), 1u) << "once, however often it is tried";
    ASSERT_FALSE(events_.empty()) << "who holds others is not told";
    for (const RendezvousEvent& event : events_) EXPECT_EQ(event.type, RendezvousType::kShort);
  }
  PassTime();
  Accept();
  EXPECT_TRUE(NextEvent(RendezvousType::kEstablished).has_value());

  RawPeer second(waits);
  ASSERT_TRUE(second.Connect(Port()));
  const NoDescriptors again;
  ASSERT_TRUE(PumpUntil([&] { return lines_.size() == 2; })) << "the next time is told too";
}

}  // namespace
}  // namespace esdp::fabric::qpip
