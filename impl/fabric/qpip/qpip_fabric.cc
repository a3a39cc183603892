#include "impl/fabric/qpip/qpip_fabric.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "impl/base/status.h"
#include "impl/fabric/qpip/commons.h"
#include "impl/fabric/qpip/hot_list.h"
#include "impl/fabric/qpip/queue_pair.h"
#include "impl/fabric/qpip/rendezvous.h"
#include "impl/fabric/qpip/tcp_stream.h"
#include "impl/fabric/soft/fabric_frame.h"

namespace esdp::fabric::qpip {
namespace {

// While a caller spins and finds nothing, the sockets that were busy last are tried directly; all
// of them are looked at once in so many polls.
constexpr uint32_t kIdlePollsPerLook = 16;
// While a caller lives on what its own posts complete, the sockets still have their turn.
constexpr uint32_t kFullPollsPerLook = 8;
constexpr uint32_t kPartPollsPerLook = 2;
// However few polls that were.
constexpr uint64_t kFramesPerLook = 4096;

constexpr Limits kLimits{
    .region_bytes_max = soft::RegionTable::kRegionBytesMax,
    .message_bytes_max = kMessageBytesMax,
    .message_bytes_best = Transmitter::kSegmentBytes,
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

using Frame = soft::FabricFrame<QueuePair, FabricShared, Rendezvous>;

class QpipFabric final : public Frame {
 public:
  explicit QpipFabric(const QpipOptions& options) : Frame(options) {}

  absl::Status Open() {
    ESDP_RETURN_IF_ERROR(TcpStream::Check(shared_.options));
    if (shared_.options.lend_pages) {
      ESDP_ASSIGN_OR_RETURN(Lender lender, Lender::Open());
      shared_.transmit_scratch.lender.emplace(std::move(lender));
    }
    return shared_.poller.Open();
  }

  const char* name() const override { return "qpip"; }
  const Limits& limits() const override { return kLimits; }

  absl::StatusOr<ListenerId> ListenOver(int descriptor) override {
    return rendezvous_.ListenOver(descriptor);
  }
  absl::Status ConnectOver(QueuePairId id, int descriptor, ConstBytes private_data,
                           Time deadline) override;

  size_t Poll(absl::Span<Completion> completions) override;
  bool PollRendezvous(RendezvousEvent& event) override;
  Time NextDeadline() const override { return shared_.poller.NextDeadline(); }

 private:
  void OnDestroyed(QueuePairId id) override { hot_.Forget(id); }

  bool LooksAllTheSame(bool full);
  void Progress();
  bool TryHot(bool& others_first);
  bool Look();
  bool Dispatch(const Readiness& ready);
  bool HasSpentItsTurn(const Readiness& ready);
  template <typename Step>
  bool Serve(QueuePair& queue_pair, Step step);
  void OnNoMemory(const Readiness& ready);
  void RunDeadlines();

  HotList hot_;
  uint32_t idle_polls_ = 0;
  uint32_t unlooked_polls_ = 0;
};

absl::Status QpipFabric::ConnectOver(QueuePairId id, int descriptor, ConstBytes private_data,
                                     Time deadline) {
  ESDP_RETURN_IF_ERROR(CheckUnused(id));
  return rendezvous_.ConnectOver(id, descriptor, private_data, deadline);
}

// --- progress ---

size_t QpipFabric::Poll(absl::Span<Completion> completions) {
  size_t count = Take(completions);
  if (count == 0 || LooksAllTheSame(count == completions.size())) {
    unlooked_polls_ = 0;
    Progress();
    count += Take(completions.subspan(count));
  }
  shared_.poller.Signal(shared_.outbox.HasCompletions() || shared_.outbox.HasEvents());
  return count;
}

// What there is already goes first: whoever polls has something to do, and is back soon. The answer
// to what was just sent would not be here now, and to look for it costs a system call.
bool QpipFabric::LooksAllTheSame(bool full) {
  return ++unlooked_polls_ >= (full ? kFullPollsPerLook : kPartPollsPerLook);
}

bool QpipFabric::PollRendezvous(RendezvousEvent& event) {
  if (!shared_.outbox.TakeEvent(event)) return false;
  if (event.type == RendezvousType::kEstablished) {
    if (QueuePair* queue_pair = Find(event.queue_pair)) queue_pair->OnAnnounced();
  }
  shared_.poller.Signal(shared_.outbox.HasCompletions() || shared_.outbox.HasEvents());
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
  if (moved) hot_.OnBusy();
  const bool look = hot_.empty() || others_first || shared_.frames_received >= kFramesPerLook ||
                    idle_polls_ % kIdlePollsPerLook == hot_.tries_before_look() ||
                    (moved && hot_.TimeToLook());
  if (!look) return;
  if (Look()) idle_polls_ = 0;
  if (shared_.poller.HasDeadlines()) RunDeadlines();
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
  shared_.frames_received = 0;
  const size_t count = shared_.poller.Ready(absl::MakeSpan(ready));
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
  if (ready.kind == Watched::kLingering) shared_.lingering.OnDeadline(ready.owner);
}

bool QpipFabric::Dispatch(const Readiness& ready) {
  if (ready.kind != Watched::kQueuePair) hot_.OnOthersReady();
  switch (ready.kind) {
    case Watched::kQueuePair: {
      const QueuePairId id{ready.owner};
      QueuePair* queue_pair = Find(id);
      if (queue_pair == nullptr) return false;
      const bool moved = Serve(
          *queue_pair, [&](QueuePair& one) { return one.OnReady(ready.readable, ready.writable); });
      if (moved && ready.readable && !queue_pair->HasSpentItsTurn() && hot_.Add(id)) {
        hot_.OnOthersReady();
      }
      return moved;
    }
    case Watched::kListener:
      return rendezvous_.OnListenerReady(ready.owner);
    case Watched::kRequest:
      return rendezvous_.OnRequestReady(ready.owner);
    case Watched::kInitiator:
      return rendezvous_.OnInitiatorReady(ready.owner);
    case Watched::kLingering:
      shared_.lingering.OnReady(ready.owner);
      return true;
    case Watched::kProcess:  // none here
      break;
  }
  return false;
}

void QpipFabric::RunDeadlines() {
  const Time now = Now();
  Readiness due;
  while (shared_.poller.NextDue(now, due)) {
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
        shared_.lingering.OnDeadline(due.owner);
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
