#ifndef ESDP_TESTS_PROVIDER_SHARD_PAIR_H_
#define ESDP_TESTS_PROVIDER_SHARD_PAIR_H_

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "impl/fabric/port.h"
#include "impl/provider/rejection.h"
#include "impl/provider/shard.h"
#include "impl/provider/wire_trace.h"
#include "tests/fabric/loopback.h"

namespace esdp::fabric::sim {
class World;
}

namespace esdp::provider {

using fabric::Loopback;

// What a front end would remember. Any thread may look while the shard runs.
class Recorder final : public Observer {
 public:
  struct Finished {
    ConnectionId connection{};
    Transfer* transfer = nullptr;
    TransferResult result;  // without its pointer
    std::string text;       // of the failure
  };
  struct Ended {
    ConnectionId connection{};
    Failure failure;
  };

  void OnIncoming(ListenerId, ConnectionId connection, const Address&, const Address&,
                  uint8_t fabric) override;
  void OnConnected(ConnectionId connection, const Address&, const Address&,
                   uint8_t fabric) override;
  void OnFailed(ConnectionId connection, const Failure& cause) override;
  // Fails the test where the connection's failure ends the transfer and was not told before.
  void OnTransferFinished(ConnectionId connection, Transfer& transfer,
                          const TransferResult& result) override;
  void OnImmediateSent(ImmediateSend& send) override;
  void OnShutDown(ConnectionId connection, const Failure& failure) override;
  void OnClosed(ConnectionId connection, const Failure& cause, uint64_t) override;
  void OnResumed(ConnectionId connection, const Failure& failure) override;
  void OnReadiness(ConnectionId connection, const Readiness& readiness) override;

  std::vector<ConnectionId> incoming() const;
  std::vector<ConnectionId> connected() const;
  std::vector<uint8_t> fabrics() const;  // of those that came and those that were made
  std::vector<Finished> finished() const;
  std::vector<Ended> shut_down() const;
  std::vector<Ended> closed() const;
  std::vector<Ended> resumed() const;
  // What was reported last; nothing, where nothing was.
  std::optional<Readiness> readiness(ConnectionId connection) const;
  std::optional<Finished> Find(const Transfer& transfer) const;
  void Forget();

  std::vector<ImmediateSend> sent() const;
  void OnRejected(Rejection reason) override;
  uint64_t rejected(Rejection reason) const;

  // Called from OnTransferFinished, under the shard lock.
  std::function<void(Transfer&)> on_finished;
  // Counts and keeps no record, for tests that count allocations.
  bool quiet = false;
  uint64_t quiet_finished = 0;

 private:
  mutable std::mutex mutex_;
  std::vector<ConnectionId> incoming_;
  std::vector<ConnectionId> connected_;
  std::vector<uint8_t> fabrics_;
  std::vector<ConnectionId> failed_;
  std::vector<Finished> finished_;
  std::vector<ImmediateSend> sent_;
  std::vector<Ended> shut_down_;
  std::vector<Ended> closed_;
  std::vector<Ended> resumed_;
  std::map<ConnectionId, Readiness> readiness_;
  std::map<Rejection, uint64_t> rejected_;
};

enum class World { kSim, kQpipManual, kQpipThread };
std::string NameOf(World world);

// A shard with its observer.
struct Side {
  Recorder recorder;
  WireTrace trace{64};  // its last messages, printed where the test fails
  std::unique_ptr<Shard> shard;
};

// Two shards that can reach each other, and a connection between them on request.
class ShardPair {
 public:
  // The client's messages pass `tap`, or its trace if that is null.
  explicit ShardPair(World world, WireTap* tap = nullptr);
  ~ShardPair();

  // Moves both sides until `done`, at most `most` (virtual time in the sim); whether it came.
  bool RunUntil(const std::function<bool()>& done, Duration most = std::chrono::seconds(20));
  // Moves everything until nothing moves, or for `time`.
  void RunFor(Duration time);

  // One more of the same world, for a program of its own on the port.
  std::unique_ptr<fabric::Fabric> MakeFabric();

  Address Listen(const ConnectionOptions& options = {}, int backlog = 8);
  // Connects client to server; false if that fails.
  bool Connect(const ConnectionOptions& options = {});

  Side& client() { return client_; }
  Side& server() { return server_; }
  ConnectionId client_connection() const { return client_connection_; }
  ConnectionId server_connection() const { return server_connection_; }
  ListenerId listener() const { return listener_; }
  World world() const { return world_; }

 private:
  Shard& clock();
  bool PollBoth();
  bool MoveOnce(Time deadline);

  World world_;
  std::shared_ptr<fabric::sim::World> simulated_;
  Side client_;
  Side server_;
  ListenerId listener_{};
  std::optional<Address> address_;
  ConnectionId client_connection_{};
  ConnectionId server_connection_{};
};

// Bytes that are registered on a shard until that ends: they have to outlive it.
class Memory {
 public:
  Memory(Side& side, size_t bytes, Exposure exposure = Exposure::kPerOperation);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void Fill(uint64_t seed);
  std::vector<std::byte>& bytes() { return bytes_; }
  MemoryRegion& region() { return *region_; }

 private:
  std::vector<std::byte> bytes_;
  std::shared_ptr<MemoryRegion> region_;
};

// A transfer of ranges of one memory, with everything that has to stay in place.
struct Job {
  Job(Memory& memory, bool is_send, uint64_t offset, uint64_t length);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  std::vector<Piece> pieces;
  Transfer transfer;
};

void Submit(Side& side, ConnectionId connection, Job& job);
void Submit(Side& side, ConnectionId connection, Request::Kind kind);

}  // namespace esdp::provider

#endif  // ESDP_TESTS_PROVIDER_SHARD_PAIR_H_
