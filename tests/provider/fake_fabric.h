#ifndef ESDP_TESTS_PROVIDER_FAKE_FABRIC_H_
#define ESDP_TESTS_PROVIDER_FAKE_FABRIC_H_

#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "impl/fabric/port.h"

namespace esdp::provider {

// A fabric that carries nothing: it records what is asked of it, and answers what the test has put
// in. It belongs to the shard; the test reaches it through the pointer it kept, and every member is
// safe to use from any thread.
class FakeFabric final : public fabric::Fabric {
 public:
  struct Posted {
    fabric::QueuePairId queue_pair{};
    fabric::SendWork work;
    std::vector<fabric::ScatterEntry> entries;
    std::vector<std::byte> bytes;  // of a send: what the entries held at post
  };
  struct Region {
    std::byte* base = nullptr;
    uint64_t length = 0;
    fabric::Access access;
  };
  struct Window {
    fabric::QueuePairId queue_pair{};
    fabric::RegionId region{};
    std::byte* address = nullptr;
    uint64_t length = 0;
    fabric::Access access;
  };

  FakeFabric();
  ~FakeFabric() override;

  // --- what the test may set before use ---
  fabric::Limits& mutable_limits() { return limits_; }
  void Refuse(const std::string& call, const absl::Status& status);  // until it is set to OK
  // Sends are over as soon as they are posted, and the descriptor does not tell.
  void CompleteAtOnce();

  // --- what the test puts in ---
  void Complete(const fabric::Completion& completion);
  // Completes the oldest send or receive that has not been completed.
  void CompleteSend(fabric::WorkStatus status = fabric::WorkStatus::kSuccess);
  void Deliver(fabric::QueuePairId queue_pair, ConstBytes message, uint32_t invalidated_key = 0);
  void LoseWindow(uint32_t key);  // as where the peer invalidates it
  void Raise(const fabric::RendezvousEvent& event);
  void MoveTime(Duration by);

  // --- what the test looks at ---
  std::vector<Posted> sends() const;
  size_t receives_posted() const;
  size_t sends_unfinished() const;
  std::map<uint64_t, Region> regions() const;
  std::map<uint32_t, Window> windows() const;
  size_t queue_pairs() const;
  fabric::QueuePairId last_queue_pair() const;
  std::vector<std::byte> private_data() const;  // of the last Connect or Accept
  int rejects() const;
  std::vector<std::byte> rejection() const;  // the private data of the last one
  size_t completions_waiting() const;
  int polls() const;
  int polls_of(std::thread::id thread) const;
  bool waits_expected() const;
  int disconnects() const;
  Time last_connect_deadline() const;

  // --- Fabric ---
  const char* name() const override { return "fake"; }
  const fabric::Limits& limits() const override { return limits_; }
  Time Now() const override;
  absl::StatusOr<fabric::RegionId> Register(std::byte* base, uint64_t length,
                                            fabric::Access access) override;
  absl::StatusOr<fabric::RegionId> RegisterDmaBuf(const fabric::DmaBuf& buffer, std::byte* base,
                                                  uint64_t length, fabric::Access access) override;
  absl::Status Deregister(fabric::RegionId region) override;
  absl::StatusOr<fabric::RemoteRange> RegionKey(fabric::RegionId region) override;
  absl::StatusOr<fabric::RemoteRange> Bind(fabric::QueuePairId queue_pair, fabric::RegionId region,
                                           std::byte* address, uint64_t length,
                                           fabric::Access access) override;
  absl::Status Unbind(fabric::QueuePairId queue_pair, uint32_t key) override;
  absl::StatusOr<fabric::QueuePairId> CreateQueuePair(
      const fabric::QueuePairOptions& options) override;
  absl::Status DestroyQueuePair(fabric::QueuePairId queue_pair) override;
  absl::Status PostSend(fabric::QueuePairId queue_pair,
                        absl::Span<const fabric::SendWork> batch) override;
  absl::Status PostReceive(fabric::QueuePairId queue_pair,
                           absl::Span<const fabric::ReceiveWork> batch) override;
  absl::StatusOr<fabric::ListenerId> Listen(const fabric::Address& address, int backlog) override;
  absl::StatusOr<fabric::Address> ListenerAddress(fabric::ListenerId listener) const override;
  absl::Status StopListening(fabric::ListenerId listener) override;
  absl::Status Connect(fabric::QueuePairId queue_pair, const fabric::Address& local,
                       const fabric::Address& peer, ConstBytes private_data,
                       Time deadline) override;
  absl::Status Accept(fabric::RequestId request, fabric::QueuePairId queue_pair,
                      ConstBytes private_data) override;
  absl::Status Reject(fabric::RequestId request, ConstBytes private_data) override;
  absl::Status Disconnect(fabric::QueuePairId queue_pair, bool orderly) override;
  size_t Poll(absl::Span<fabric::Completion> completions) override;
  bool PollRendezvous(fabric::RendezvousEvent& event) override;
  int fd() const override { return event_fd_; }
  bool ExpectWaits(bool expected) override;
  bool HasUnpolled() const override;

 private:
  struct Receive {
    uint64_t work_id = 0;
    fabric::ScatterEntry entry;
  };
  struct QueuePair {
    std::deque<Receive> receives;
    uint32_t send_work = 0;
  };

  absl::Status Refusal(const std::string& call) const;
  size_t Unfinished(fabric::QueuePairId queue_pair) const;
  bool FinishSend(fabric::WorkStatus status);
  void Signal();
  void Quiet();

  mutable std::mutex mutex_;
  int event_fd_ = -1;
  fabric::Limits limits_;
  std::map<std::string, absl::Status> refusals_;
  Time now_{std::chrono::seconds(1)};
  uint64_t next_ = 1;
  std::map<uint64_t, Region> regions_;
  std::map<uint32_t, Window> windows_;
  std::set<uint32_t> lost_windows_;
  std::map<uint64_t, QueuePair> queue_pairs_;
  std::vector<Posted> sends_;
  size_t sends_completed_ = 0;
  size_t receives_posted_ = 0;
  std::deque<fabric::Completion> completions_;
  std::deque<fabric::RendezvousEvent> events_;
  std::vector<std::byte> private_data_;
  Time connect_deadline_{};
  int rejects_ = 0;
  std::vector<std::byte> rejection_;
  int polls_ = 0;
  std::map<std::thread::id, int> polls_of_;
  bool completes_at_once_ = false;
  bool waits_expected_ = true;
  int disconnects_ = 0;
};

}  // namespace esdp::provider

#endif  // ESDP_TESTS_PROVIDER_FAKE_FABRIC_H_
