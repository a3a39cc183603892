#ifndef ESDP_TESTS_FABRIC_CONTRACT_HARNESS_H_
#define ESDP_TESTS_FABRIC_CONTRACT_HARNESS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "impl/base/bytes.h"
#include "impl/fabric/port.h"

// What the contract suite stands on: a pair of fabrics of some kind, memory registered with them,
// connections between them, and a pump that lets things happen until something holds or a bound is
// reached. One connects ("one"), the other listens ("two").

namespace esdp::fabric {

// A kind of fabric under test. The program that links the suite defines ContractVariants.
struct ContractVariant {
  std::string name;
  Address host;              // where "two" listens, with port 0
  QueuePairOptions options;  // of every queue pair that a test does not shape itself
  std::function<std::pair<std::unique_ptr<Fabric>, std::unique_ptr<Fabric>>()> make;
  // Memory to register, all zeros, where it has to be of a special kind.
  std::function<std::shared_ptr<std::byte>(size_t)> allocate = {};
  // It lies in files that can be passed to the peer.
  bool in_files = false;
  // Cases that cannot hold on a device, by name, with the device's reason.
  std::map<std::string, std::string> not_here;
};
std::vector<ContractVariant> ContractVariants();

inline void PrintTo(const ContractVariant& variant, std::ostream* out) { *out << variant.name; }
inline std::string NameOf(const ::testing::TestParamInfo<ContractVariant>& info) {
  return info.param.name;
}

// A fabric and what was polled from it and not looked at yet.
class Endpoint {
 public:
  explicit Endpoint(std::unique_ptr<Fabric> fabric) : fabric_(std::move(fabric)) {}

  Fabric* operator->() const { return fabric_.get(); }
  Fabric* get() const { return fabric_.get(); }
  void End() { fabric_.reset(); }

  // Polls everything there is: events first, so that a kEstablished comes before its receives. A
  // message that is lent is copied to the receive of the same queue pair and number at once.
  void Collect();

  absl::Status Send(QueuePairId queue_pair, uint64_t id, const std::vector<ScatterEntry>& entries);
  absl::Status SendAndInvalidate(QueuePairId queue_pair, uint64_t id,
                                 const std::vector<ScatterEntry>& entries, uint32_t key);
  absl::Status Receive(QueuePairId queue_pair, uint64_t id,
                       const std::vector<ScatterEntry>& entries);
  absl::Status Read(QueuePairId queue_pair, uint64_t id, const std::vector<ScatterEntry>& entries,
                    RemoteRange from);
  absl::Status Write(QueuePairId queue_pair, uint64_t id, const std::vector<ScatterEntry>& entries,
                     RemoteRange to);
  absl::Status Invalidate(QueuePairId queue_pair, uint64_t id, uint32_t key);

  std::deque<Completion> completions;
  std::deque<RendezvousEvent> events;
  // Called for each completion, before anything else is asked of the fabric.
  std::function<void(const Completion&)> on_polled;

 private:
  void Place(const Completion& completion);

  std::map<std::pair<QueuePairId, uint64_t>, std::vector<ScatterEntry>> receives_;
  std::unique_ptr<Fabric> fabric_;
};

inline constexpr Access kAllRights{.local_write = true, .remote_read = true, .remote_write = true};

// Registered bytes. Declared after the fixture's fabrics, it ends before them: nothing polls then.
class Memory {
 public:
  Memory(Endpoint& endpoint, size_t size, Access access = kAllRights);

  size_t size() const { return size_; }
  RegionId region() const { return region_; }
  std::byte* at(size_t offset) { return bytes_.get() + offset; }
  ScatterEntry Entry(size_t offset, size_t length);
  ScatterEntry All() { return Entry(0, size()); }
  // Bytes that tell their place, different for each seed.
  void Fill(uint64_t seed);
  void Clear() { std::fill(at(0), at(size_), std::byte{0}); }
  std::vector<std::byte> Copy(size_t offset, size_t length) const;
  bool IsClear(size_t offset, size_t length) const;

 private:
  size_t size_;
  std::shared_ptr<std::byte> bytes_;
  RegionId region_ = RegionId::kNone;
};

// A connection: the queue pair on side one and that on side two.
struct Link {
  QueuePairId one = QueuePairId::kNone;
  QueuePairId two = QueuePairId::kNone;
};

inline constexpr Access kForReading{.remote_read = true};
inline constexpr Access kForWriting{.remote_write = true};
inline constexpr Duration kPatience = std::chrono::seconds(10);

class ContractTest : public ::testing::TestWithParam<ContractVariant> {
 protected:
  void SetUp() override;

  // Collects on both sides and lets time pass until `done`; false when `bound` has passed.
  bool Pump(const std::function<bool()>& done, Duration bound = kPatience);
  // Lets everything happen that is going to happen by itself.
  void Settle();
  // The same wait without polling: only time passes.
  void LetTimePass();

  QueuePairOptions Options() const { return GetParam().options; }
  QueuePairId Create(Endpoint& endpoint);
  // Where "two" listens; begins to at the first call.
  Address Listening();
  ListenerId listener() const { return listener_; }
  absl::Status StartConnecting(QueuePairId queue_pair, ConstBytes private_data = {},
                               Duration patience = kPatience);
  // A connection on which both sides may send.
  Link Connect() { return Connect(Options(), Options()); }
  Link Connect(const QueuePairOptions& one, const QueuePairOptions& two);
  // The same without the first message: where the initiator speaks first, side two may not send
  // yet.
  Link ConnectSilently(const QueuePairOptions& one, const QueuePairOptions& two);
  void SpeakFirst(const Link& link);

  // A window over a piece of memory for the peer of the queue pair.
  RemoteRange Bind(Endpoint& endpoint, QueuePairId queue_pair, Memory& memory, size_t offset,
                   size_t length, Access access);
  // Side one reads or writes there and is refused, with the causes of E3 and E4 and nothing read.
  void ExpectReadRefused(const Link& link, RemoteRange from, size_t length);
  void ExpectWriteRefused(const Link& link, RemoteRange to, size_t length);
  // Side one reads or writes there and succeeds.
  void ExpectReadAllowed(const Link& link, RemoteRange from, const std::vector<std::byte>& bytes);
  void ExpectWriteAllowed(const Link& link, RemoteRange to, size_t length);

  // The next completion of the queue pair, or event of the kind; the test fails when none comes.
  Completion NextCompletion(Endpoint& endpoint, QueuePairId queue_pair);
  RendezvousEvent NextEvent(Endpoint& endpoint, RendezvousType type);
  void ExpectSuccess(Endpoint& endpoint, QueuePairId queue_pair, uint64_t id);
  // What stands for `cause`: itself, or `told` where the fabric may say that instead.
  Cause AsTold(Cause cause, Cause told) const;
  WorkStatus AsTold(WorkStatus status, WorkStatus told) const;
  // Both sides end, with these causes; their completions stay where they are.
  void ExpectEnds(Cause one, Cause two);
  // All completions of the queue pair until its kDisconnected.
  std::vector<Completion> CompletionsUntilEnd(Endpoint& endpoint, QueuePairId queue_pair,
                                              Cause cause);
  size_t CountEvents(const Endpoint& endpoint, RendezvousType type) const;
  bool IsReadable(const Endpoint& endpoint) const;

  std::unique_ptr<Endpoint> one_;
  std::unique_ptr<Endpoint> two_;

 private:
  bool Wait(Duration remaining);

  // Of the pair: where one of two kinds tells less, both ends may be told less.
  bool tells_why_ = true;
  bool keeps_terminate_ = false;
  ListenerId listener_ = ListenerId::kNone;
  std::unique_ptr<Memory> scratch_one_;
  std::unique_ptr<Memory> scratch_two_;
};

#define ESDP_CONTRACT_SUITE(Suite)      \
  class Suite : public ContractTest {}; \
  INSTANTIATE_TEST_SUITE_P(On, Suite, ::testing::ValuesIn(ContractVariants()), NameOf)

#define ASSERT_POSTED(expression)                     \
  do {                                                \
    const absl::Status posted_status = (expression);  \
    ASSERT_TRUE(posted_status.ok()) << posted_status; \
  } while (false)

#define EXPECT_POSTED(expression)                     \
  do {                                                \
    const absl::Status posted_status = (expression);  \
    EXPECT_TRUE(posted_status.ok()) << posted_status; \
  } while (false)

#define ESDP_NEEDS(what)                                  \
  if (!(*one_)->limits().what || !(*two_)->limits().what) \
  GTEST_SKIP() << "not between these fabrics: " #what

#define EXPECT_CODE(expression, expected)                                           \
  do {                                                                              \
    const absl::Status refused_status = (expression);                               \
    EXPECT_EQ(refused_status.code(), absl::StatusCode::expected) << refused_status; \
  } while (false)

}  // namespace esdp::fabric

#endif  // ESDP_TESTS_FABRIC_CONTRACT_HARNESS_H_
