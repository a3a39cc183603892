#ifndef ESDP_TESTS_SOCKETS_TWO_HOSTS_H_
#define ESDP_TESTS_SOCKETS_TWO_HOSTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "esdp/context.h"
#include "gtest/gtest.h"

// Two Contexts that can reach each other, in each way in which they can be moved.

namespace esdp::sockets {

enum class Setting { kQpipThread, kQpipManual, kSim };
std::string NameOf(Setting setting);
ContextOptions OptionsOf(Setting setting);

// A Context with one queue, and one region that is filled with bytes of its own.
class Host {
 public:
  static constexpr size_t kMemoryBytes = 4 << 20;

  explicit Host(const ContextOptions& options, uint32_t depth = 256);
  ~Host();

  OpArgs Args(uint64_t cookie = 0) { return {queue, cookie}; }
  Slice At(uint64_t offset, uint64_t length) const { return *region.slice(offset, length); }
  std::string_view Text(uint64_t offset, uint64_t length) const;
  void Write(uint64_t offset, std::string_view text);
  void Fill(uint64_t seed);

  // Takes what is in the queue, without waiting, and returns how many events that were. Each is
  // checked against rules 1 and 10: nothing comes after the terminal event of an operation, nor
  // after kClose of a socket.
  size_t Collect();
  const Event* Terminal(OpId op) const;
  // The first event of this type, if it has come.
  const Event* First(EventType type) const;

  std::vector<std::byte> memory;
  Context context;
  EventQueue queue;
  Region region;
  std::vector<Event> seen;  // every event, in order

 private:
  std::map<OpId, size_t> ended_;
  std::set<SocketId> closed_;
};

// Owns the two hosts, and one connection between them on request.
class TwoHosts {
 public:
  explicit TwoHosts(Setting setting, uint32_t depth = 256);
  ~TwoHosts();

  Host& client() { return *client_; }
  Host& server() { return *server_; }
  Setting setting() const { return setting_; }

  // Moves both until `done`; false when it has not come within `most`, on the hosts' clock.
  bool RunUntil(const std::function<bool()>& done, absl::Duration most = absl::Seconds(20));
  // Moves both for a while, so that what could still happen does.
  void RunFor(absl::Duration time);
  // The terminal event of an operation of this host. The test fails if it does not come.
  Event Await(Host& host, OpId op);
  Event Await(Host& host, const absl::StatusOr<OpId>& posted);

  // A listener of the server's on a free port of the loopback address.
  void Listen(const SocketOptions& options = {}, int backlog = 16);
  // Connects; afterwards a() is the client's end and b() the server's.
  bool Connect(const SocketOptions& client_options = {}, const SocketOptions& server_options = {});

  // Of the client.
  Socket& a() { return a_; }
  // Of the server.
  Socket& b() { return b_; }
  Socket& listener() { return listener_; }
  // Destroys a host with everything that is its own, as when a process dies.
  void DestroyServer();
  void DestroyClient();

 private:
  const Setting setting_;
  std::unique_ptr<Host> client_;
  std::unique_ptr<Host> server_;
  Socket listener_, a_, b_;
};

// The base of tests that hold in every setting.
class TwoHostsTest : public testing::TestWithParam<Setting> {
 protected:
  TwoHostsTest() : hosts_(GetParam()) {}

  Host& client() { return hosts_.client(); }
  Host& server() { return hosts_.server(); }
  Socket& a() { return hosts_.a(); }
  Socket& b() { return hosts_.b(); }
  bool RunUntil(const std::function<bool()>& done, absl::Duration most = absl::Seconds(20)) {
    return hosts_.RunUntil(done, most);
  }
  Event Await(Host& host, const absl::StatusOr<OpId>& posted) { return hosts_.Await(host, posted); }
  Event Await(Host& host, OpId op) { return hosts_.Await(host, op); }
  void ConnectOrFail() { ASSERT_TRUE(hosts_.Connect()); }

  TwoHosts hosts_;
};

#define ESDP_IN_EVERY_SETTING(Suite)                                                          \
  INSTANTIATE_TEST_SUITE_P(                                                                   \
      All, Suite, testing::Values(Setting::kQpipThread, Setting::kQpipManual, Setting::kSim), \
      [](const auto& tested) { return NameOf(tested.param); })

}  // namespace esdp::sockets

namespace esdp {
inline void PrintTo(OpId op, std::ostream* out) { *out << "op " << static_cast<uint64_t>(op); }
inline void PrintTo(ErrorKind kind, std::ostream* out) { *out << ToString(kind); }
inline void PrintTo(EventType type, std::ostream* out) { *out << ToString(type); }
}  // namespace esdp

#endif  // ESDP_TESTS_SOCKETS_TWO_HOSTS_H_
