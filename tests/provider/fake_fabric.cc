#include "tests/provider/fake_fabric.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace esdp::provider {

using Lock = std::lock_guard<std::mutex>;

FakeFabric::FakeFabric() : event_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  limits_.region_bytes_max = uint64_t{1} << 40;
  limits_.message_bytes_max = uint64_t{1} << 31;
  limits_.send_work_max = 1024;
  limits_.receive_work_max = 1024;
  limits_.scatter_gather_max = 16;
  limits_.read_scatter_gather_max = 4;
  limits_.reads_in_flight_max = 16;
  limits_.private_data_max = 512;
  limits_.windows = true;
  limits_.remote_invalidate = true;
}

FakeFabric::~FakeFabric() { close(event_fd_); }

// --- the test's side -----------------------------------------------------------------------------

void FakeFabric::Refuse(const std::string& call, const absl::Status& status) {
  const Lock lock(mutex_);
  refusals_[call] = status;
}

absl::Status FakeFabric::Refusal(const std::string& call) const {
  const auto found = refusals_.find(call);
  return found == refusals_.end() ? absl::OkStatus() : found->second;
}

void FakeFabric::Signal() {
  if (!waits_expected_) return;
  const uint64_t one = 1;
  (void)!write(event_fd_, &one, sizeof(one));
}

bool FakeFabric::ExpectWaits(bool expected) {
  const Lock lock(mutex_);
  return !std::exchange(waits_expected_, expected) && expected;
}

void FakeFabric::Quiet() {
  uint64_t count = 0;
  if (completions_.empty() && events_.empty()) (void)!read(event_fd_, &count, sizeof(count));
}

void FakeFabric::Complete(const fabric::Completion& completion) {
  const Lock lock(mutex_);
  completions_.push_back(completion);
  Signal();
}

void FakeFabric::CompleteAtOnce() {
  const Lock lock(mutex_);
  completes_at_once_ = true;
}

void FakeFabric::CompleteSend(fabric::WorkStatus status) {
  const Lock lock(mutex_);
  if (FinishSend(status)) Signal();
}

size_t FakeFabric::Unfinished(fabric::QueuePairId queue_pair) const {
  size_t count = 0;
  for (size_t i = sends_completed_; i < sends_.size(); ++i) {
    if (sends_[i].queue_pair == queue_pair) ++count;
  }
  return count;
}

bool FakeFabric::FinishSend(fabric::WorkStatus status) {
  if (sends_completed_ == sends_.size()) return false;
  const Posted& posted = sends_[sends_completed_++];
  fabric::Completion completion;
  completion.queue_pair = posted.queue_pair;
  completion.work_id = posted.work.work_id;
  completion.opcode = posted.work.opcode;
  completion.status = status;
  if (completion.opcode == fabric::Opcode::kInvalidate) windows_.erase(posted.work.invalidate_key);
  completions_.push_back(completion);
  return true;
}

void FakeFabric::Deliver(fabric::QueuePairId queue_pair, ConstBytes message,
                         uint32_t invalidated_key) {
  const Lock lock(mutex_);
  QueuePair& pair = queue_pairs_.at(static_cast<uint64_t>(queue_pair));
  const Receive receive = pair.receives.front();
  pair.receives.pop_front();
  CopyBytes(Bytes(receive.entry.address, receive.entry.length), message);
  fabric::Completion completion;
  completion.queue_pair = queue_pair;
  completion.work_id = receive.work_id;
  completion.opcode = fabric::Opcode::kReceive;
  completion.byte_length = static_cast<uint32_t>(message.size());
  completion.has_invalidated = invalidated_key != 0;
  completion.invalidated_key = invalidated_key;
  windows_.erase(invalidated_key);
  completions_.push_back(completion);
  Signal();
}

void FakeFabric::LoseWindow(uint32_t key) {
  const Lock lock(mutex_);
  windows_.erase(key);
  lost_windows_.insert(key);
}

void FakeFabric::Raise(const fabric::RendezvousEvent& event) {
  const Lock lock(mutex_);
  events_.push_back(event);
  Signal();
}

void FakeFabric::MoveTime(Duration by) {
  const Lock lock(mutex_);
  now_ += by;
}

#define ESDP_FAKE_GETTER(type, name, value) \
  type FakeFabric::name() const {           \
    const Lock lock(mutex_);                \
    return value;                           \
  }
ESDP_FAKE_GETTER(std::vector<FakeFabric::Posted>, sends, sends_)
ESDP_FAKE_GETTER(size_t, receives_posted, receives_posted_)
ESDP_FAKE_GETTER(size_t, sends_unfinished, sends_.size() - sends_completed_)
using RegionMap = std::map<uint64_t, FakeFabric::Region>;
using WindowMap = std::map<uint32_t, FakeFabric::Window>;
ESDP_FAKE_GETTER(RegionMap, regions, regions_)
ESDP_FAKE_GETTER(WindowMap, windows, windows_)
ESDP_FAKE_GETTER(size_t, queue_pairs, queue_pairs_.size())
ESDP_FAKE_GETTER(std::vector<std::byte>, private_data, private_data_)
ESDP_FAKE_GETTER(int, rejects, rejects_)
ESDP_FAKE_GETTER(std::vector<std::byte>, rejection, rejection_)
ESDP_FAKE_GETTER(size_t, completions_waiting, completions_.size())
ESDP_FAKE_GETTER(int, polls, polls_)
ESDP_FAKE_GETTER(bool, waits_expected, waits_expected_)
ESDP_FAKE_GETTER(int, disconnects, disconnects_)
ESDP_FAKE_GETTER(Time, last_connect_deadline, connect_deadline_)
ESDP_FAKE_GETTER(Time, Now, now_)
#undef ESDP_FAKE_GETTER

int FakeFabric::polls_of(std::thread::id thread) const {
  const Lock lock(mutex_);
  const auto found = polls_of_.find(thread);
  return found == polls_of_.end() ? 0 : found->second;
}

fabric::QueuePairId FakeFabric::last_queue_pair() const {
  const Lock lock(mutex_);
  return queue_pairs_.empty() ? fabric::QueuePairId::kNone
                              : fabric::QueuePairId{queue_pairs_.rbegin()->first};
}

// --- memory --------------------------------------------------------------------------------------

absl::StatusOr<fabric::RegionId> FakeFabric::Register(std::byte* base, uint64_t length,
                                                      fabric::Access access) {
  const Lock lock(mutex_);
  if (const absl::Status refusal = Refusal("Register"); !refusal.ok()) return refusal;
  if (length == 0 || length > limits_.region_bytes_max) return absl::OutOfRangeError("length");
  const uint64_t id = next_++;
  regions_[id] = {base, length, access};
  return fabric::RegionId{id};
}

absl::StatusOr<fabric::RegionId> FakeFabric::RegisterDmaBuf(const fabric::DmaBuf&, std::byte* base,
                                                            uint64_t length,
                                                            fabric::Access access) {
  return Register(base, length, access);
}

absl::Status FakeFabric::Deregister(fabric::RegionId region) {
  const Lock lock(mutex_);
  if (const absl::Status refusal = Refusal("Deregister"); !refusal.ok()) return refusal;
  return regions_.erase(static_cast<uint64_t>(region)) == 1 ? absl::OkStatus()
                                                            : absl::NotFoundError("region");
}

absl::StatusOr<fabric::RemoteRange> FakeFabric::RegionKey(fabric::RegionId region) {
  const Lock lock(mutex_);
  const auto found = regions_.find(static_cast<uint64_t>(region));
  if (found == regions_.end()) return absl::NotFoundError("region");
  if (!found->second.access.remote_read && !found->second.access.remote_write) {
    return absl::FailedPreconditionError("no remote right");
  }
  return fabric::RemoteRange{static_cast<uint32_t>(0x10000 + static_cast<uint64_t>(region)),
                             0x1000};
}

absl::StatusOr<fabric::RemoteRange> FakeFabric::Bind(fabric::QueuePairId queue_pair,
                                                     fabric::RegionId region, std::byte* address,
                                                     uint64_t length, fabric::Access access) {
  const Lock lock(mutex_);
  if (const absl::Status refusal = Refusal("Bind"); !refusal.ok()) return refusal;
  const uint32_t key = static_cast<uint32_t>(0x20000 + next_++);
  windows_[key] = {queue_pair, region, address, length, access};
  return fabric::RemoteRange{key, 0};
}

absl::Status FakeFabric::Unbind(fabric::QueuePairId, uint32_t key) {
  const Lock lock(mutex_);
  return windows_.erase(key) == 1 ? absl::OkStatus() : absl::NotFoundError("window");
}

// --- queue pairs ---------------------------------------------------------------------------------

absl::StatusOr<fabric::QueuePairId> FakeFabric::CreateQueuePair(
    const fabric::QueuePairOptions& options) {
  const Lock lock(mutex_);
  if (const absl::Status refusal = Refusal("CreateQueuePair"); !refusal.ok()) return refusal;
  const uint64_t id = next_++;
  queue_pairs_[id].send_work = options.send_work;
  return fabric::QueuePairId{id};
}

absl::Status FakeFabric::DestroyQueuePair(fabric::QueuePairId queue_pair) {
  const Lock lock(mutex_);
  std::erase_if(windows_, [&](const auto& entry) { return entry.second.queue_pair == queue_pair; });
  return queue_pairs_.erase(static_cast<uint64_t>(queue_pair)) == 1
             ? absl::OkStatus()
             : absl::NotFoundError("queue pair");
}

absl::Status FakeFabric::PostSend(fabric::QueuePairId queue_pair,
                                  absl::Span<const fabric::SendWork> batch) {
  const Lock lock(mutex_);
  if (const absl::Status refusal = Refusal("PostSend"); !refusal.ok()) return refusal;
  const auto found = queue_pairs_.find(static_cast<uint64_t>(queue_pair));
  if (found == queue_pairs_.end()) return absl::NotFoundError("queue pair");
  for (const fabric::SendWork& work : batch) {
    const bool is_dead =
        work.opcode == fabric::Opcode::kInvalidate && lost_windows_.count(work.invalidate_key) != 0;
    if (is_dead) return absl::NotFoundError("no such key");
    if (Unfinished(queue_pair) >= found->second.send_work) {
      return absl::ResourceExhaustedError("send queue");
    }
    Posted posted{queue_pair, work, {work.entries, work.entries + work.entry_count}, {}};
    for (const fabric::ScatterEntry& entry : posted.entries) {
      posted.bytes.insert(posted.bytes.end(), entry.address, entry.address + entry.length);
    }
    sends_.push_back(std::move(posted));
    if (completes_at_once_) FinishSend(fabric::WorkStatus::kSuccess);
  }
  return absl::OkStatus();
}

absl::Status FakeFabric::PostReceive(fabric::QueuePairId queue_pair,
                                     absl::Span<const fabric::ReceiveWork> batch) {
  const Lock lock(mutex_);
  if (const absl::Status refusal = Refusal("PostReceive"); !refusal.ok()) return refusal;
  const auto found = queue_pairs_.find(static_cast<uint64_t>(queue_pair));
  if (found == queue_pairs_.end()) return absl::NotFoundError("queue pair");
  for (const fabric::ReceiveWork& work : batch) {
    found->second.receives.push_back({work.work_id, work.entries[0]});
  }
  receives_posted_ += batch.size();
  return absl::OkStatus();
}

// --- rendezvous ----------------------------------------------------------------------------------

absl::StatusOr<fabric::ListenerId> FakeFabric::Listen(const fabric::Address&, int) {
  const Lock lock(mutex_);
  if (const absl::Status refusal = Refusal("Listen"); !refusal.ok()) return refusal;
  return fabric::ListenerId{next_++};
}

absl::StatusOr<fabric::Address> FakeFabric::ListenerAddress(fabric::ListenerId listener) const {
  fabric::Address address;
  address.port = static_cast<uint16_t>(listener);
  return address;
}

absl::Status FakeFabric::StopListening(fabric::ListenerId) { return absl::OkStatus(); }

absl::Status FakeFabric::Connect(fabric::QueuePairId, const fabric::Address&,
                                 const fabric::Address&, ConstBytes private_data, Time deadline) {
  const Lock lock(mutex_);
  if (const absl::Status refusal = Refusal("Connect"); !refusal.ok()) return refusal;
  private_data_.assign(private_data.begin(), private_data.end());
  connect_deadline_ = deadline;
  return absl::OkStatus();
}

absl::Status FakeFabric::Accept(fabric::RequestId, fabric::QueuePairId, ConstBytes private_data) {
  const Lock lock(mutex_);
  if (const absl::Status refusal = Refusal("Accept"); !refusal.ok()) return refusal;
  private_data_.assign(private_data.begin(), private_data.end());
  return absl::OkStatus();
}

absl::Status FakeFabric::Reject(fabric::RequestId, ConstBytes private_data) {
  const Lock lock(mutex_);
  ++rejects_;
  rejection_.assign(private_data.begin(), private_data.end());
  return absl::OkStatus();
}

absl::Status FakeFabric::Disconnect(fabric::QueuePairId, bool) {
  const Lock lock(mutex_);
  if (const absl::Status refusal = Refusal("Disconnect"); !refusal.ok()) return refusal;
  ++disconnects_;
  return absl::OkStatus();
}

// --- progress ------------------------------------------------------------------------------------

size_t FakeFabric::Poll(absl::Span<fabric::Completion> completions) {
  const Lock lock(mutex_);
  ++polls_;
  ++polls_of_[std::this_thread::get_id()];
  const size_t count = std::min(completions.size(), completions_.size());
  for (size_t i = 0; i < count; ++i) {
    completions[i] = completions_.front();
    completions_.pop_front();
  }
  Quiet();
  return count;
}

bool FakeFabric::HasUnpolled() const {
  const Lock lock(mutex_);
  return !completions_.empty() || !events_.empty();
}

bool FakeFabric::PollRendezvous(fabric::RendezvousEvent& event) {
  const Lock lock(mutex_);
  if (events_.empty()) return false;
  event = events_.front();
  events_.pop_front();
  Quiet();
  return true;
}

}  // namespace esdp::provider
