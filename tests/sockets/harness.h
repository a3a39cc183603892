#ifndef ESDP_TESTS_SOCKETS_HARNESS_H_
#define ESDP_TESTS_SOCKETS_HARNESS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "esdp/context.h"
#include "gtest/gtest.h"

// What the tests of the public interface stand on: two contexts that can reach each other, on every
// kind of fabric and progress; connections between them; registered memory; and waits that have a
// bound. Each test ends with the same question: has every operation that was accepted had exactly
// one terminal event?

namespace esdp::contract {

enum class World : uint8_t {
  kQpipThread,
  kQpipManual,
  kLocalThread,
  kLocalManual,
  kSim,
  kVerbsThread,
  kVerbsManual
};
std::string NameOf(World world);
inline void PrintTo(World world, std::ostream* out) { *out << NameOf(world); }

// What a program is run over: qpip, local and the simulator; where ESDP_VERBS_HOSTS names a device and an
// address of it, "rxe0=10.77.0.1", that device alone.
std::vector<World> Worlds();
std::vector<World> WorldsInRealTime();  // all but the simulator
std::vector<World> WorldsOverTcp();     // where a raw TCP stream can be the peer, and a device
std::vector<World> WorldsWithThread();
std::vector<World> WorldsByHand();  // where nothing moves but in the calls of the test
inline bool HasThread(World world) {
  return world == World::kQpipThread || world == World::kLocalThread ||
         world == World::kVerbsThread;
}
Transport TransportOf(World world);
// Where that world is reached from this machine.
Address HostOf(World world, uint16_t port);

// Of one context of that world; `of` is the first context of the same world, or null for the first.
ContextOptions OptionsOf(World world, Context* of = nullptr);
uint64_t NewSeed();

// One end: a context with a queue and a socket, and what was taken from the queue and not looked at
// yet.
class Side {
 public:
  void Open(const ContextOptions& options, uint32_t depth = 1024);

  OpArgs Args(uint64_t cookie = 0) { return {.queue = queue, .cookie = cookie}; }
  // Notes an operation that has to be accepted; its events are counted from now on.
  OpId Accepted(absl::StatusOr<OpId> posted);
  OpId Send(const Slice& slice) { return Accepted(socket.Send(slice, SendFlags::kNone, Args())); }
  OpId Send(const Slice& slice, const OpArgs& args) {
    return Accepted(socket.Send(slice, SendFlags::kNone, args));
  }
  OpId Recv(const Slice& slice, RecvFlags flags = RecvFlags::kNone) {
    return Accepted(socket.Recv(slice, flags, Args()));
  }
  OpId Recv(const Slice& slice, RecvFlags flags, const OpArgs& args) {
    return Accepted(socket.Recv(slice, flags, args));
  }
  OpId Close(CloseMode mode = CloseMode::kGraceful) { return Accepted(socket.Close(mode, Args())); }

  // Takes what the queue holds.
  void Collect();
  const Event* Find(OpId op) const;  // the terminal event, among those not looked at
  // How many operations were accepted and have not ended.
  size_t Outstanding() const;
  // Fails the test unless every accepted operation has had its one terminal event.
  void ExpectAllEnded() const;

  Context context;
  EventQueue queue;
  Socket socket;
  std::deque<Event> events;

 private:
  void Note(const Event& event);

  std::map<OpId, int> terminals_;
};

// Bytes that are registered. The fixture owns them, so that they outlive every operation.
class Memory {
 public:
  Memory(Context& context, size_t size, const RegisterOptions& options);

  size_t size() const { return bytes.size(); }
  Slice All() const { return region.slice(); }
  Slice At(uint64_t offset, uint64_t length) const;
  void Fill(uint64_t seed);
  void Clear() { std::fill(bytes.begin(), bytes.end(), std::byte{0}); }

  std::vector<std::byte> bytes;
  Region region;
};

// The same bytes at both places? Tells the first difference.
::testing::AssertionResult SameBytes(absl::Span<const std::byte> one,
                                     absl::Span<const std::byte> two);

class PairTest : public ::testing::TestWithParam<World> {
 protected:
  explicit PairTest(uint32_t depth = 1024) : depth_(depth) {}
  void SetUp() override;
  void TearDown() override;
  World world() const { return GetParam(); }

  // Client and server have connected sockets afterwards. May be called again for another pair; the
  // sockets of the one before are dropped.
  void Connect(const SocketOptions& client = {}, const SocketOptions& server = {});
  // The parts of it.
  Address Listen(const SocketOptions& options = {}, int backlog = 16);
  void ConnectTo(const Address& address, const SocketOptions& options = {});
  void Join(const Address& address);  // by the client's socket, which the test has made
  Memory& Make(Side& side, size_t size, const RegisterOptions& options = {});

  // Moves both sides until `done`, which is asked often; false when the bound has passed.
  bool Pump(const std::function<bool()>& done, absl::Duration bound = absl::Seconds(20));
  // Moves what moves by itself, for a while: so that what must not happen would have happened.
  void Settle();
  // The terminal event of the operation, out of the queue in any order; others stay.
  Event End(Side& side, OpId op);
  // The next event in the order of the queue.
  Event Next(Side& side);
  // Both ends of a transfer that succeeds.
  void EndWell(Side& side, OpId op, uint64_t bytes);
  // Sends `length` bytes of `from` and receives them into `to`; both are whole.
  void Carry(Side& source, Memory& from, Side& sink, Memory& to, uint64_t length,
             Path path = Path::kByThreshold);
  // Puts as much into the stream from that side as goes without the other's receiving, and tells
  // the sends that wait.
  std::vector<OpId> FillUp(Side& side, Memory& from, size_t sends, Path path);

  std::deque<std::unique_ptr<Memory>> memories_;
  Side server_;
  Side client_;
  Socket listener_;

 private:
  void Move(absl::Duration* quantum);

  uint32_t depth_;
};

inline std::string ParamName(const ::testing::TestParamInfo<World>& info) {
  return NameOf(info.param);
}

#define ESDP_ON_EVERY_WORLD(Suite) \
  INSTANTIATE_TEST_SUITE_P(On, Suite, ::testing::ValuesIn(Worlds()), ParamName)

// Where time is the clock's, threads are threads and peers are processes.
#define ESDP_ON_REAL_WORLDS(Suite) \
  INSTANTIATE_TEST_SUITE_P(On, Suite, ::testing::ValuesIn(WorldsInRealTime()), ParamName)
#define ESDP_ON_TCP_WORLDS(Suite) \
  INSTANTIATE_TEST_SUITE_P(On, Suite, ::testing::ValuesIn(WorldsOverTcp()), ParamName)
#define ESDP_ON_WORLDS_BY_HAND(Suite) \
  INSTANTIATE_TEST_SUITE_P(On, Suite, ::testing::ValuesIn(WorldsByHand()), ParamName)
#define ESDP_ON_SIM(Suite) \
  INSTANTIATE_TEST_SUITE_P(On, Suite, ::testing::Values(World::kSim), ParamName)

// A refusal: of this kind, with the code that belongs to it, and a text that helps.
::testing::AssertionResult Refuses(const absl::Status& status, ErrorKind kind,
                                   absl::StatusCode code);
template <typename T>
::testing::AssertionResult Refuses(const absl::StatusOr<T>& answer, ErrorKind kind,
                                   absl::StatusCode code) {
  return Refuses(answer.status(), kind, code);
}

}  // namespace esdp::contract

#endif  // ESDP_TESTS_SOCKETS_HARNESS_H_
