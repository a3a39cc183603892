#include "impl/fabric/local/local_fabric.h"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "impl/base/secure_random.h"
#include "impl/base/status.h"
#include "impl/base/undo.h"
#include "impl/fabric/local/fabric_shared.h"
#include "impl/fabric/local/hot_list.h"
#include "impl/fabric/local/look_pacing.h"
#include "impl/fabric/local/queue_pair.h"
#include "impl/fabric/local/rendezvous.h"
#include "impl/fabric/soft/fabric_frame.h"

namespace esdp::fabric::local {
namespace {

using soft::Readiness;
using soft::Watched;

// One that is looked at in vain so often is put to sleep; the only one later, since a spinning
// caller has nothing else to look at.
constexpr uint32_t kIdleMax = 256;
constexpr uint32_t kIdleMaxAlone = 16384;
// So many more, and it is no more looked at when others have woken us.
constexpr uint32_t kIdleMaxAsleep = 64;

bool IsLent(const Completion& completion) { return completion.lent != nullptr; }

constexpr Limits kLimits{
    .region_bytes_max = soft::RegionTable::kRegionBytesMax,
    .message_bytes_max = kMessageBytesMax,
    .message_bytes_best = kMessageBytesBest,
    .send_work_max = kWorkMax,
    .receive_work_max = kWorkMax,
    .scatter_gather_max = kScatterGatherMax,
    .read_scatter_gather_max = kScatterGatherMax,
    .reads_in_flight_max = kReadsInFlightMax,
    .private_data_max = kPrivateDataMax,
    .answer_data_max = kPrivateDataMax,
    .windows = true,
    .remote_invalidate = true,
    .initiator_speaks_first = false,
    .of_this_host = true,
    .lends_messages = true,
    .virtual_time = false,
};

using Frame = soft::FabricFrame<QueuePair, FabricShared, Rendezvous>;

class LocalFabric final : public Frame {
 public:
  explicit LocalFabric(const LocalOptions& options) : Frame(options) {
    limits_.shares_memory = options.share != Share::kNever;
  }

  absl::Status Open() {
    ESDP_RETURN_IF_ERROR(Channel::MakeBlock().status());  // can this system do it at all?
    shared_.reads_peers = shared_.options.reads_peers;
    Nonce nonce{};
    const bool is_shown = shared_.reads_peers && shared_.options.share != Share::kNever;
    if (is_shown && FillSecureRandom(std::as_writable_bytes(std::span(nonce)))) {
      shared_.nonce = nonce;
    }
    (void)FillSecureRandom(std::as_writable_bytes(std::span(&shared_.number, 1)));
    return shared_.poller.Open();
  }

  const char* name() const override { return "local"; }
  const Limits& limits() const override { return limits_; }

  absl::StatusOr<RegionId> RegisterShared(const SharedFile& file, std::byte* base, uint64_t length,
                                          Access access) override;
  absl::Status Deregister(RegionId region) override;
  absl::StatusOr<RemoteRange> Bind(QueuePairId id, RegionId region, std::byte* address,
                                   uint64_t length, Access access) override;
  absl::Status PostSend(QueuePairId id, absl::Span<const SendWork> batch) override;
  absl::Status PostReceive(QueuePairId id, absl::Span<const ReceiveWork> batch) override;
  size_t Poll(absl::Span<Completion> completions) override;
  void ReturnLent(QueuePairId id) override {
    if (QueuePair* const queue_pair = Find(id)) queue_pair->ReturnLent(1);
  }
  bool PollRendezvous(RendezvousEvent& event) override;
  bool ExpectWaits(bool expected) override;
  bool HasUnpolled() const override { return awake_ || shared_.look_again || Frame::HasUnpolled(); }
  Time NextDeadline() const override {
    return std::min(shared_.poller.NextDeadline(), rendezvous_.NextDeadline());
  }

 private:
  void OnDestroyed(QueuePairId id) override {
    hot_.Forget(id);
    if (shared_.look_again) Signal();
  }

  bool Progress();
  bool ProgressHot();
  void SendToSleep();
  bool Look();
  void Dispatch(const Readiness& ready);
  void OnNoMemory(const Readiness& ready);
  void RunDeadlines();
  void StayAwake(QueuePairId id);
  void Signal();

  Limits limits_ = kLimits;
  HotList hot_;
  bool waits_expected_ = true;
  bool awake_ = false;     // some queue pair has more to do, and nobody tells of it
  bool look_due_ = false;  // somebody was woken who was awake: it still has to be taken note of
  LookPacing pacing_;
};

absl::StatusOr<RemoteRange> LocalFabric::Bind(QueuePairId id, RegionId region, std::byte* address,
                                              uint64_t length, Access access) {
  absl::StatusOr<RemoteRange> range = Frame::Bind(id, region, address, length, access);
  if (range.ok() && access.remote_read) Find(id)->Show(range->key, region, address, length);
  return range;
}

absl::StatusOr<RegionId> LocalFabric::RegisterShared(const SharedFile& file, std::byte* base,
                                                     uint64_t length, Access access) {
  ESDP_ASSIGN_OR_RETURN(const RegionId region, Register(base, length, access));
  if (shared_.options.share == Share::kNever) return region;
  Undo undo([&] { (void)Frame::Deregister(region); });
  const absl::Status added = shared_.shared_regions.Add(region, file, base, length);
  // Without a descriptor for it, it is a region as any other.
  if (!added.ok() && !absl::IsResourceExhausted(added)) return added;
  undo.Cancel();
  return region;
}

absl::Status LocalFabric::Deregister(RegionId region) {
  ESDP_RETURN_IF_ERROR(Frame::Deregister(region));
  if (!shared_.shared_regions.Remove(region)) return absl::OkStatus();
  queue_pairs_.ForEach(
      [region](uint64_t, std::unique_ptr<QueuePair>& queue_pair) { queue_pair->TakeBack(region); });
  return absl::OkStatus();
}

absl::Status LocalFabric::PostSend(QueuePairId id, absl::Span<const SendWork> batch) {
  ESDP_RETURN_IF_ERROR(Frame::PostSend(id, batch));
  if (Find(id)->IsPulling()) StayAwake(id);
  return absl::OkStatus();
}

absl::Status LocalFabric::PostReceive(QueuePairId id, absl::Span<const ReceiveWork> batch) {
  ESDP_RETURN_IF_ERROR(Frame::PostReceive(id, batch));
  if (Find(id)->WaitsForReceive() && !batch.empty()) StayAwake(id);
  return absl::OkStatus();
}

// There is something to do that nobody else tells of.
void LocalFabric::StayAwake(QueuePairId id) {
  hot_.Add(id);
  awake_ = true;
  Signal();
}

// --- progress ---

size_t LocalFabric::Poll(absl::Span<Completion> completions) {
  if (!shared_.outbox.HasCompletions()) shared_.left_channels.Free();
  size_t count = Take(completions);
  bool moved = count != 0;
  // Progress ends what has been lent, and so waits for the next Poll where this one lends some.
  const bool lends = std::ranges::any_of(completions.first(count), IsLent);
  if ((count < completions.size() && !lends) || completions.empty()) {
    shared_.look_again = false;
    moved = Progress() || moved;
    count += Take(completions.subspan(count));
  }
  // Who has found something is back soon: nobody need wake him until he finds nothing.
  moved = moved || shared_.look_again;
  awake_ = moved && !hot_.empty();
  if (!moved) SendToSleep();
  pacing_.OnCompletions(count);
  Signal();
  return count;
}

bool LocalFabric::PollRendezvous(RendezvousEvent& event) {
  if (!shared_.outbox.TakeEvent(event)) return false;
  if (event.type == RendezvousType::kEstablished) {
    if (QueuePair* queue_pair = Find(event.queue_pair)) {
      queue_pair->OnAnnounced();
      StayAwake(event.queue_pair);
    }
  }
  Signal();
  return true;
}

bool LocalFabric::ExpectWaits(bool expected) {
  const bool was_silent = expected && !waits_expected_;
  waits_expected_ = expected;
  return was_silent;
}

// Blocks are looked at without a system call. Descriptors tell of what is new, of those that were
// asleep, and of ends.
bool LocalFabric::Progress() {
  bool moved = ProgressHot();
  pacing_.OnPoll(moved);
  // A caller that spins for others of its fabrics looks here less often.
  const bool look = pacing_.IsTimeToLook() || (!moved && (waits_expected_ || look_due_));
  if (look && Look()) moved = true;
  return moved;
}

bool LocalFabric::ProgressHot() {
  bool moved = false;
  hot_.Visit([&](QueuePairId id) {
    QueuePair* queue_pair = Find(id);
    if (queue_pair == nullptr) return false;
    const bool was_asleep = queue_pair->IsAsleep();
    bool busy = true;
    try {
      busy = queue_pair->Progress();
    } catch (const std::bad_alloc&) {
      queue_pair->OnNoMemory();
    }
    look_due_ = look_due_ || (busy && was_asleep);
    moved = moved || busy;
    return busy;
  });
  return moved;
}

// Each is told of from now on, or has more to do. While nobody waits they stay awake for a while.
void LocalFabric::SendToSleep() {
  const uint32_t most = waits_expected_ ? 0 : hot_.size() == 1 ? kIdleMaxAlone : kIdleMax;
  awake_ = false;
  hot_.ForgetIf([&](QueuePairId id, uint32_t idle) {
    QueuePair* queue_pair = Find(id);
    if (queue_pair == nullptr) return true;
    const bool is_hot = idle <= most + kIdleMaxAsleep;
    const bool asleep = idle >= most && queue_pair->Sleep(is_hot);
    awake_ = awake_ || !asleep;
    return asleep && !is_hot;
  });
}

bool LocalFabric::Look() {
  std::array<Readiness, 64> ready;
  look_due_ = false;
  const size_t count = shared_.poller.Ready(absl::MakeSpan(ready));
  pacing_.OnLook(count != 0);
  for (size_t i = 0; i < count; ++i) {
    try {
      Dispatch(ready[i]);
    } catch (const std::bad_alloc&) {
      OnNoMemory(ready[i]);
    }
  }
  RunDeadlines();
  return count != 0 && ProgressHot();
}

// It costs whoever it was done for, and no other.
void LocalFabric::OnNoMemory(const Readiness& ready) {
  if (ready.kind == Watched::kRequest) rendezvous_.OnRequestDeadline(ready.owner);
  if (ready.kind == Watched::kInitiator) rendezvous_.OnNoMemory(ready.owner);
}

void LocalFabric::Dispatch(const Readiness& ready) {
  switch (ready.kind) {
    case Watched::kQueuePair:
    case Watched::kProcess:
      if (QueuePair* queue_pair = Find(QueuePairId{ready.owner})) {
        hot_.Add(QueuePairId{ready.owner});
        if (ready.kind == Watched::kProcess) queue_pair->OnProcessDied();
        if (ready.kind == Watched::kQueuePair) queue_pair->TakeFiles(/*is_readable=*/true);
      }
      break;
    case Watched::kListener:
      (void)rendezvous_.OnListenerReady(ready.owner);
      break;
    case Watched::kRequest:
      rendezvous_.OnRequestReady(ready.owner);
      break;
    case Watched::kInitiator:
      rendezvous_.OnInitiatorReady(ready.owner);
      break;
    case Watched::kLingering:  // none here
      break;
  }
}

void LocalFabric::RunDeadlines() {
  if (NextDeadline() == kTimeInfinite) return;
  const Time now = Now();
  rendezvous_.RunDeadlines(now);
  Readiness due;
  while (shared_.poller.NextDue(now, due)) {
    if (due.kind == Watched::kListener) rendezvous_.OnListenerDeadline(due.owner);
    if (due.kind == Watched::kRequest) rendezvous_.OnRequestDeadline(due.owner);
    if (due.kind != Watched::kQueuePair) continue;
    if (QueuePair* queue_pair = Find(QueuePairId{due.owner})) queue_pair->OnDeadline();
  }
}

void LocalFabric::Signal() {
  const bool is_expected =
      waits_expected_ && (shared_.outbox.HasCompletions() || awake_ || shared_.look_again);
  shared_.poller.Signal(is_expected || shared_.outbox.HasEvents());
}

}  // namespace

std::string WhyCopiedTwice() {
  std::string limit = WhyUnreadable();
  if (limit.empty()) return limit;
  return limit +
         ". Programs that trust one another set ContextOptions::local_share to kUser, which "
         "spares a copy of what Context::Allocate gives";
}

absl::StatusOr<std::unique_ptr<Fabric>> MakeLocalFabric(const LocalOptions& options) {
  auto fabric = std::make_unique<LocalFabric>(options);
  ESDP_RETURN_IF_ERROR(fabric->Open());
  return std::unique_ptr<Fabric>(std::move(fabric));
}

}  // namespace esdp::fabric::local
