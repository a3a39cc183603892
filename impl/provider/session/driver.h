#ifndef ESDP_IMPL_PROVIDER_SESSION_DRIVER_H_
#define ESDP_IMPL_PROVIDER_SESSION_DRIVER_H_

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "impl/base/ring.h"
#include "impl/fabric/port.h"
#include "impl/provider/observer.h"
#include "impl/provider/progress/timers.h"
#include "impl/provider/session/operations.h"
#include "impl/provider/session/session.h"
#include "impl/provider/session/set_up_actions.h"
#include "impl/provider/transport/exposure.h"
#include "impl/provider/transport/posting.h"
#include "impl/provider/transport/receive_growth.h"
#include "impl/provider/wire_tap.h"
#include "impl/sdp/interface/action.h"
#include "impl/sdp/interface/input.h"

namespace esdp::provider {

// The one loop: an input goes into a core, its actions come out and are carried out on the fabric,
// and the answers of those go in before anything else does.
//
//   Owns:     the operations and the timers of the shard; the work that is collected and not yet
//             posted.
//   Threads:  the holder of the shard lock. The observer is called from here and must not call
//             back.
//   Blocks:   never; allocates nothing in a steady state.
//   Units:    bytes; instants on the fabric's clock.
//   Errors:   what the fabric refuses ends the connection: the core is told by ConnectFailed or
//             ConnectionLost.
class Driver {
 public:
  using Log = std::function<void(const std::string&)>;

  // `tap` may be null.
  Driver(Observer& observer, const Log& log, SetUpActions& set_up, WireTap* tap)
      : observer_(observer), log_(log), set_up_(set_up), tap_(tap) {
    actions_.reserve(kActionsOfStep);
  }

  // Bytes by which the receive buffers of all connections may grow together.
  void BoundReceiveGrowth(uint64_t bytes) { growth_.Bound(bytes); }

  // The instant that the following steps happen at.
  void SetNow(Time now) { now_ = now; }
  Time now() const { return now_; }

  // Runs one input and everything that follows from it at once. The work it makes may wait for
  // Flush.
  void Feed(Session& session, const sdp::Input& input);
  // The input is an AskSend that the core takes at once, of these bytes: they are posted. Returns
  // their place in the stream; nothing where the connection has ended over it.
  std::optional<uint64_t> SendImmediate(Session& session, const sdp::Input& ask,
                                        std::span<const ConstBytes> parts);
  // A call even where it could be inlined: tests count what it costs.
  [[gnu::noinline]] void FeedCompletion(Session& session, const fabric::Completion& completion);
  // The queue pair has left the ready state, or never reached it, and all its work is back. Takes
  // every key back first.
  void FeedLoss(Session& session);
  // Within a step: the answer to one of its actions, which is fed when all are carried out.
  void Answer(const sdp::Input& answer) { answers_.PushBack(answer); }
  // Posts what is collected.
  void Flush() { posting_.Flush(); }
  // While it is set, work is posted before the end of an operation is told: the peer need not wait
  // for that.
  void SetEager(bool eager) { eager_ = eager; }

  // Ends the connection without its core: a step of that was broken off for want of memory, so
  // that nobody knows it any more. Every operation ends, with kNoMemory.
  void Condemn(Session& session);
  // The root cause; to be asked for only when there is one.
  const Failure& RootCause(Session& session, sdp::Outcome outcome);

  const TapPoint& tap() const { return tap_; }
  OperationTable& operations() { return operations_; }
  Timers& timers() { return timers_; }
  Time NextDeadline() const { return timers_.Next(); }
  // Room to note the end of so many connections.
  void ReserveEnded(size_t connections) {
    if (connections > ended_.capacity()) ended_.reserve(2 * connections);
  }
  // Gives back what Reserve took for more connections than these.
  void ShrinkTo(size_t connections) {
    timers_.ShrinkTo(connections);
    std::vector<Session*> ended;
    ended.reserve(std::max(connections, ended_.size()));
    ended = ended_;
    ended_.swap(ended);
  }
  // Connections that have ended since the last call; each once.
  std::vector<Session*>& ended() { return ended_; }
  const std::vector<Session*>& ended() const { return ended_; }
  void WriteLog(const std::string& text) const {
    if (log_) log_(text);
  }

 private:
  static constexpr size_t kActionsOfStep = 64;  // more than a step of bulk data takes

  // What the transport shows is what the core advertises.
  static ExposureId ExposureOf(sdp::AdvertId advert) {
    return ExposureId{static_cast<uint32_t>(advert)};
  }
  static sdp::AdvertId AdvertOf(ExposureId id) { return sdp::AdvertId{static_cast<uint32_t>(id)}; }

  void RunStep(Session& session, const sdp::Input& input);
  void CarryOut(Session& session, const sdp::Action& action);
  // Most steps ask for nothing.
  void FeedAnswers(Session& session) {
    const bool none = answers_.empty() && expose_answers_.empty() && !session.core.closed();
    if (!none) [[unlikely]]
      FeedAllAnswers(session);
  }
  void FeedAllAnswers(Session& session);
  void NoteEnd(Session& session);
  // It is to be reaped, and no timer of it rings any more.
  void ForgetEnded(Session& session);
  // All operations of the connection, none of which the core knows any more.
  void FinishAll(Session& session);

  void Act(Session& session, const sdp::StartConnect& action) { set_up_.Start(session, action); }
  void Act(Session& session, const sdp::AcceptConnection& action) {
    set_up_.Accept(session, action);
  }
  void Act(Session& session, const sdp::RejectConnection& action) {
    set_up_.Reject(session, action);
  }
  void Act(Session& session, const sdp::ReplaceQueuePair&) { set_up_.Replace(session); }
  void Act(Session& session, const sdp::AwaitHello&) { set_up_.AwaitHello(session); }
  void Act(Session& session, const sdp::Farewell& action) { set_up_.SayFarewell(session, action); }
  void Act(Session& session, const sdp::ReportConnected& action);
  void Act(Session& session, const sdp::Disconnect& action);
  void Act(Session& session, const sdp::ReportClosed& action);
  void Act(Session& session, const sdp::PostReceive& action);
  void Act(Session& session, const sdp::PrepareReceives& action);
  void Act(Session& session, const sdp::RetireReceive& action);
  void Act(Session& session, const sdp::ReportReadiness& action);
  void Act(Session& session, const sdp::Send& action);
  void Act(Session& session, const sdp::Read& action);
  void Act(Session& session, const sdp::Write& action);
  void Act(Session& session, const sdp::CopyIn& action);
  void Act(Session& session, const sdp::CopyOut& action);
  void Act(Session& session, const sdp::Expose& action);
  void Act(Session& session, const sdp::Withdraw& action);
  void Act(Session& session, const sdp::FinishOperation& action);
  void Act(Session& session, const sdp::SetTimer& action);
  void Act(Session& session, const sdp::ClearTimer& action);

  std::optional<ResolvedRange> Find(Session& session, const sdp::OperationRange& range);
  void CopyToBuffer(Session& session, const sdp::CopyOut& action, ConstBytes source);
  [[gnu::noinline]] void PostInvalidations(Transport& transport);
  void PostTransfer(Session& session, fabric::Opcode opcode, const sdp::OperationRange& local,
                    const sdp::RemoteRange& remote);
  void FinishSuspend(Session& session, sdp::Outcome outcome);
  void FinishTransfer(Session& session, Transfer& transfer, const sdp::FinishOperation& action);
  // What the oldest memory of ours that the peer may write to has been given.
  static uint64_t WrittenFor(const Session& session, const fabric::Completion& completion);
  void Receive(Session& session, const fabric::Completion& completion);
  void Fault(Session& session, const char* what);

  Observer& observer_;
  const Log& log_;
  SetUpActions& set_up_;
  const TapPoint tap_;
  Time now_{};
  bool eager_ = false;
  OperationTable operations_;
  Timers timers_;

  sdp::Actions actions_;
  GrowingRing<sdp::Input> expose_answers_;  // these before any other input
  GrowingRing<sdp::Input> answers_;
  std::vector<ExposureId> withdrawn_;
  Posting posting_;
  ReceiveGrowth growth_;
  std::vector<Session*> ended_;
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_SESSION_DRIVER_H_
