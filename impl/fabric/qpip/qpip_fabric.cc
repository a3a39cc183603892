#include "impl/fabric/qpip/qpip_fabric.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "impl/base/handle_table.h"
#include "impl/base/status.h"
#include "impl/fabric/qpip/commons.h"
#include "impl/fabric/qpip/hot_list.h"
#include "impl/fabric/qpip/queue_pair.h"
#include "impl/fabric/qpip/rendezvous.h"
#include "impl/fabric/qpip/tcp_stream.h"

namespace esdp::fabric::qpip {
namespace {

// While a caller spins and finds nothing, the sockets that were busy last are tried directly; all
// of them are looked at once in so many polls.
constexpr uint32_t kIdlePollsPerLook = 16;
constexpr uint32_t kIdlePollsBeforeLook = 8;  // an answer is often there before that
// While a caller lives on what its own posts complete, the sockets still have their turn.
constexpr uint32_t kFullPollsPerLook = 8;
constexpr uint32_t kPartPollsPerLook = 2;
// However few polls that were.
constexpr uint64_t kFramesPerLook = 4096;

constexpr Limits kLimits{
    .region_bytes_max = soft::RegionTable::kRegionBytesMax,
    .message_bytes_max = kMessageBytesMax,
    .send_work_max = kWorkMax,
    .receive_work_max = kWorkMax,
    .scatter_gather_max = kScatterGatherMax,
    .read_scatter_gather_max = kScatterGatherMax,
    .reads_in_flight_max = kReadsInFlightMax,
    .private_data_max = kPrivateDataSentMax,
    .answer_data_max = kPrivateDataSentMax,
    .windows = true,
    .remote_invalidate = true,
    .initiator_speaks_first = true,
    .takes_tcp = true,
    .virtual_time = false,
};

absl::Status UnknownQueuePair() {
  return absl::NotFoundError("no such queue pair: it was never created here, or is destroyed");
}

absl::Status AlreadyUsed() {
  return absl::FailedPreconditionError("a queue pair connects once: create another");
}

class QpipFabric final : public Fabric, private QueuePairs {
 public:
  explicit QpipFabric(const QpipOptions& options)
      : commons_(options), rendezvous_(commons_, *this) {}

  absl::Status Open() {
    ESDP_RETURN_IF_ERROR(TcpStream::Check(commons_.options));
    if (commons_.options.lend_pages) {
      ESDP_ASSIGN_OR_RETURN(Lender lender, Lender::Open());
      commons_.transmit_scratch.lender.emplace(std::move(lender));
    }
    return commons_.poller.Open();
  }

  const char* name() const override { return "qpip"; }
  const Limits& limits() const override { return kLimits; }
  Time Now() const override { return commons_.clock->Now(); }

  absl::StatusOr<RegionId> Register(std::byte* base, uint64_t length, Access access) override {
    return commons_.regions.Register(base, length, access);
  }
  absl::Status Deregister(RegionId region) override { return commons_.regions.Deregister(region); }
  absl::StatusOr<RemoteRange> RegionKey(RegionId region) override {
    return commons_.regions.RegionKey(region);
  }
  absl::StatusOr<RemoteRange> Bind(QueuePairId id, RegionId region, std::byte* address,
                                   uint64_t length, Access access) override;
  absl::Status Unbind(QueuePairId id, uint32_t key) override;
  uint64_t Written(QueuePairId id, uint32_t key) const override {
    return commons_.regions.Written(id, key);
  }

  absl::StatusOr<QueuePairId> CreateQueuePair(const QueuePairOptions& options) override;
  absl::Status DestroyQueuePair(QueuePairId id) override;
  absl::Status PostSend(QueuePairId id, absl::Span<const SendWork> batch) override {
    QueuePair* queue_pair = Find(id);
    return queue_pair == nullptr ? UnknownQueuePair() : queue_pair->PostSend(batch);
  }
  absl::Status PostReceive(QueuePairId id, absl::Span<const ReceiveWork> batch) override {
    QueuePair* queue_pair = Find(id);
    return queue_pair == nullptr ? UnknownQueuePair() : queue_pair->PostReceive(batch);
  }
  void ReleaseUnusedReceives(QueuePairId id) override {
    if (QueuePair* queue_pair = Find(id)) queue_pair->ReleaseUnusedReceives();
  }

  absl::StatusOr<ListenerId> Listen(const Address& address, int backlog) override {
    return rendezvous_.Listen(address, backlog);
  }
  absl::StatusOr<Address> ListenerAddress(ListenerId listener) const override {
    return rendezvous_.ListenerAddress(listener);
  }
  absl::StatusOr<ListenerId> ListenOver(int descriptor) override {
    return rendezvous_.ListenOver(descriptor);
  }
  absl::Status StopListening(ListenerId listener) override {
    return rendezvous_.StopListening(listener);
  }
  absl::Status Connect(QueuePairId id, const Address& local, const Address& peer,
                       ConstBytes private_data, Time deadline) override;
  absl::Status ConnectOver(QueuePairId id, int descriptor, ConstBytes private_data,
                           Time deadline) override;
  absl::Status Accept(RequestId request, QueuePairId id, ConstBytes private_data) override;
  absl::Status Reject(RequestId request, ConstBytes private_data) override {
    return rendezvous_.Reject(request, private_data);
  }
  absl::Status Disconnect(QueuePairId id, bool orderly) override {
    QueuePair* queue_pair = Find(id);
    return queue_pair == nullptr ? UnknownQueuePair() : queue_pair->Disconnect(orderly);
  }

  size_t Poll(absl::Span<Completion> completions) override;
  bool PollRendezvous(RendezvousEvent& event) override;
  int fd() const override { return commons_.poller.descriptor(); }
  Time NextDeadline() const override { return commons_.poller.NextDeadline(); }

 private:
  QueuePair* Find(QueuePairId id) override {
    const auto* slot = queue_pairs_.Find(static_cast<uint64_t>(id));
    return slot == nullptr ? nullptr : slot->get();
  }

  bool LooksAllTheSame(bool full);
  size_t Take(absl::Span<Completion> completions);
  void Progress();
  bool TryHot(bool& others_first);
  bool Look();
  bool Dispatch(const Readiness& ready);
  bool HasSpentItsTurn(const Readiness& ready);
  template <typename Step>
  bool Serve(QueuePair& queue_pair, Step step);
  void OnNoMemory(const Readiness& ready);
  void RunDeadlines();

  FabricShared commons_;
  HandleTable<std::unique_ptr<QueuePair>> queue_pairs_;
  Rendezvous rendezvous_;
  HotList hot_;
  uint32_t idle_polls_ = 0;
  uint32_t unlooked_polls_ = 0;
};

absl::StatusOr<RemoteRange> QpipFabric::Bind(QueuePairId id, RegionId region, std::byte* address,
                                             uint64_t length, Access access) {
  const QueuePair* queue_pair = Find(id);
  if (queue_pair == nullptr) return UnknownQueuePair();
  if (!queue_pair->IsReady()) {
    return absl::FailedPreconditionError("a window is bound while the queue pair is ready");
  }
  return commons_.regions.Bind(id, region, address, length, access);
}

absl::Status QpipFabric::Unbind(QueuePairId id, uint32_t key) {
  const QueuePair* queue_pair = Find(id);
  if (queue_pair == nullptr) return UnknownQueuePair();
  if (queue_pair->IsConnected()) {
    return absl::FailedPreconditionError("the queue pair is connected: post kInvalidate instead");
  }
  if (commons_.regions.Invalidate(id, key) == soft::TagError::kNone) return absl::OkStatus();
  return absl::NotFoundError("the key is no live window of this queue pair");
}

absl::StatusOr<QueuePairId> QpipFabric::CreateQueuePair(const QueuePairOptions& options) {
  if (options.send_work > kWorkMax || options.receive_work > kWorkMax) {
    return absl::OutOfRangeError("more work than limits().send_work_max or receive_work_max");
  }
  QueuePairOptions fitted = options;
  fitted.initiator_depth = std::min(options.initiator_depth, kReadsInFlightMax);
  fitted.responder_resources = std::min(options.responder_resources, kReadsInFlightMax);
  const uint64_t handle = queue_pairs_.Insert(nullptr);
  if (handle == kNoHandle) return absl::ResourceExhaustedError("no more queue pairs");
  const QueuePairId id{handle};
  *queue_pairs_.Find(handle) = std::make_unique<QueuePair>(id, fitted, commons_);
  return id;
}

absl::Status QpipFabric::DestroyQueuePair(QueuePairId id) {
  QueuePair* queue_pair = Find(id);
  if (queue_pair == nullptr) return UnknownQueuePair();
  rendezvous_.GiveUp(id);
  queue_pair->Destroy();
  hot_.Forget(id);
  commons_.outbox.EraseEventsIf(
      [id](const RendezvousEvent& event) { return event.queue_pair == id; });
  queue_pairs_.Erase(static_cast<uint64_t>(id));
  return absl::OkStatus();
}

absl::Status QpipFabric::Connect(QueuePairId id, const Address& local, const Address& peer,
                                 ConstBytes private_data, Time deadline) {
  const QueuePair* queue_pair = Find(id);
  if (queue_pair == nullptr) return UnknownQueuePair();
  if (!queue_pair->IsUnused()) return AlreadyUsed();
  return rendezvous_.Connect(id, local, peer, private_data, deadline);
}

absl::Status QpipFabric::ConnectOver(QueuePairId id, int descriptor, ConstBytes private_data,
                                     Time deadline) {
  const QueuePair* queue_pair = Find(id);
  if (queue_pair == nullptr) return UnknownQueuePair();
  if (!queue_pair->IsUnused()) return AlreadyUsed();
  return rendezvous_.ConnectOver(id, descriptor, private_data, deadline);
}

absl::Status QpipFabric::Accept(RequestId request, QueuePairId id, ConstBytes private_data) {
  const QueuePair* queue_pair = Find(id);
  if (queue_pair == nullptr) return UnknownQueuePair();
  if (!queue_pair->IsUnused()) return AlreadyUsed();
  return rendezvous_.Accept(request, id, private_data);
}

// --- progress ---

size_t QpipFabric::Poll(absl::Span<Completion> completions) {
  size_t count = Take(completions);
  if (count == 0 || LooksAllTheSame(count == completions.size())) {
    unlooked_polls_ = 0;
    Progress();
    count += Take(completions.subspan(count));
  }
  commons_.poller.Signal(commons_.outbox.HasCompletions() || commons_.outbox.HasEvents());
  return count;
}

// What there is already goes first: whoever polls has something to do, and is back soon. The answer
// to what was just sent would not be here now, and to look for it costs a system call.
bool QpipFabric::LooksAllTheSame(bool full) {
  return ++unlooked_polls_ >= (full ? kFullPollsPerLook : kPartPollsPerLook);
}

size_t QpipFabric::Take(absl::Span<Completion> completions) {
  size_t count = 0;
  while (count < completions.size() && commons_.outbox.HasCompletions()) {
    const Completion& taken = completions[count++] = commons_.outbox.TakeCompletion();
    if (QueuePair* queue_pair = Find(taken.queue_pair)) queue_pair->OnPolled(taken.opcode);
  }
  return count;
}

bool QpipFabric::PollRendezvous(RendezvousEvent& event) {
  if (!commons_.outbox.TakeEvent(event)) return false;
  if (event.type == RendezvousType::kEstablished) {
    if (QueuePair* queue_pair = Find(event.queue_pair)) queue_pair->OnAnnounced();
  }
  commons_.poller.Signal(commons_.outbox.HasCompletions() || commons_.outbox.HasEvents());
  return true;
}

// Trying a busy socket costs one call that may fail; asking which sockets are ready costs one call
// and then a second. So a spinning caller gets the first, and the rest of the world the second
// every few rounds, after a few idle ones, and whenever a socket waits to take more or has more
// than one turn's worth to give.
void QpipFabric::Progress() {
  bool others_first = false;
  const bool moved = TryHot(others_first);
  idle_polls_ = moved ? 0 : idle_polls_ + 1;
  const bool look = hot_.empty() || others_first || commons_.frames_received >= kFramesPerLook ||
                    idle_polls_ % kIdlePollsPerLook == kIdlePollsBeforeLook ||
                    (moved && hot_.TimeToLook());
  if (!look) return;
  if (Look()) idle_polls_ = 0;
  if (commons_.poller.HasDeadlines()) RunDeadlines();
}

// A step that was broken off leaves a stream where nobody can go on.
template <typename Step>
bool QpipFabric::Serve(QueuePair& queue_pair, Step step) try {
  return step(queue_pair);
} catch (const std::bad_alloc&) {
  queue_pair.OnNoMemory();
  return true;
}

// One that used up its turn is left to the system, which finds it again with the others. Then, or
// if one is stuck, these are not to wait.
bool QpipFabric::TryHot(bool& others_first) {
  bool moved = false;
  hot_.Visit([&](QueuePairId id) {
    QueuePair* queue_pair = Find(id);
    if (queue_pair == nullptr) return HotList::Verdict::kForget;
    const bool busy = Serve(*queue_pair, [](QueuePair& one) {
      return one.OnReady(/*readable=*/true, /*writable=*/false);
    });
    const bool spent = queue_pair->HasSpentItsTurn();
    others_first = others_first || spent || queue_pair->IsStuck();
    moved = moved || busy;
    if (spent) return HotList::Verdict::kForget;
    return busy ? HotList::Verdict::kBusy : HotList::Verdict::kIdle;
  });
  return moved;
}

bool QpipFabric::Look() {
  std::array<Readiness, 64> ready;
  commons_.frames_received = 0;
  const size_t count = commons_.poller.Ready(absl::MakeSpan(ready));
  // Whoever has more than it may give comes behind those that have little to say.
  std::partition(ready.begin(), ready.begin() + count,
                 [this](const Readiness& one) { return !HasSpentItsTurn(one); });
  bool moved = false;
  for (size_t i = 0; i < count; ++i) {
    try {
      moved = Dispatch(ready[i]) || moved;
    } catch (const std::bad_alloc&) {
      OnNoMemory(ready[i]);
      moved = true;
    }
  }
  return moved;
}

bool QpipFabric::HasSpentItsTurn(const Readiness& ready) {
  if (ready.kind != Watched::kQueuePair) return false;
  const QueuePair* queue_pair = Find(QueuePairId{ready.owner});
  return queue_pair != nullptr && queue_pair->HasSpentItsTurn();
}

// It costs whoever it was done for, and no other.
void QpipFabric::OnNoMemory(const Readiness& ready) {
  if (ready.kind == Watched::kRequest) rendezvous_.OnRequestDeadline(ready.owner);
  if (ready.kind == Watched::kInitiator) rendezvous_.OnInitiatorWithoutMemory(ready.owner);
  if (ready.kind == Watched::kLingering) commons_.lingering.OnDeadline(ready.owner);
}

bool QpipFabric::Dispatch(const Readiness& ready) {
  switch (ready.kind) {
    case Watched::kQueuePair: {
      const QueuePairId id{ready.owner};
      QueuePair* queue_pair = Find(id);
      if (queue_pair == nullptr) return false;
      const bool moved = Serve(
          *queue_pair, [&](QueuePair& one) { return one.OnReady(ready.readable, ready.writable); });
      if (moved && ready.readable && !queue_pair->HasSpentItsTurn()) hot_.Add(id);
      return moved;
    }
    case Watched::kListener:
      return rendezvous_.OnListenerReady(ready.owner);
    case Watched::kRequest:
      return rendezvous_.OnRequestReady(ready.owner);
    case Watched::kInitiator:
      return rendezvous_.OnInitiatorReady(ready.owner);
    case Watched::kLingering:
      commons_.lingering.OnReady(ready.owner);
      return true;
    case Watched::kProcess:  // none here
      break;
  }
  return false;
}

void QpipFabric::RunDeadlines() {
  const Time now = Now();
  Readiness due;
  while (commons_.poller.NextDue(now, due)) {
    switch (due.kind) {
      case Watched::kQueuePair:
        if (QueuePair* queue_pair = Find(QueuePairId{due.owner})) {
          (void)Serve(*queue_pair, [](QueuePair& one) { return one.OnDeadline(), true; });
        }
        break;
      case Watched::kRequest:
        rendezvous_.OnRequestDeadline(due.owner);
        break;
      case Watched::kInitiator:
        rendezvous_.OnInitiatorDeadline(due.owner);
        break;
      case Watched::kLingering:
        commons_.lingering.OnDeadline(due.owner);
        break;
      case Watched::kListener:
        rendezvous_.OnListenerDeadline(due.owner);
        break;
      case Watched::kProcess:  // none here
        break;
    }
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Fabric>> MakeQpipFabric(const QpipOptions& options) {
  auto fabric = std::make_unique<QpipFabric>(options);
  ESDP_RETURN_IF_ERROR(fabric->Open());
  return std::unique_ptr<Fabric>(std::move(fabric));
}

}  // namespace esdp::fabric::qpip
