#include "impl/provider/transport/driver.h"

#include <new>
#include <utility>

#include "impl/base/check.h"
#include "impl/provider/regions.h"
#include "impl/sdp/wire/codec.h"

namespace esdp::provider {
namespace {

// So short that it takes none.
Failure NoMemory() { return {EndReason::kNoMemory, "no memory"}; }

}  // namespace

void Driver::Feed(Endpoint& endpoint, const sdp::Input& input) {
  try {
    RunStep(endpoint, input);
    FeedAnswers(endpoint);
  } catch (const std::bad_alloc&) {
    Condemn(endpoint);
  }
}

void Driver::FeedAllAnswers(Endpoint& endpoint) {
  while (!expose_answers_.empty() || !answers_.empty()) {
    const sdp::Input answer =
        expose_answers_.empty() ? answers_.TakeFront() : expose_answers_.TakeFront();
    RunStep(endpoint, answer);
  }
  if (endpoint.core.closed() && !HasEnded(endpoint.visibility)) NoteEnd(endpoint);
}

void Driver::RunStep(Endpoint& endpoint, const sdp::Input& input) {
  actions_.clear();
  endpoint.core.Step(input, now_, actions_);
  for (const sdp::Action& action : actions_) CarryOut(endpoint, action);
}

// Those that come with each message first.
inline void Driver::CarryOut(Endpoint& endpoint, const sdp::Action& action) {
  if (const auto* send = std::get_if<sdp::Send>(&action)) return Act(endpoint, *send);
  if (const auto* copy = std::get_if<sdp::CopyIn>(&action)) return Act(endpoint, *copy);
  if (const auto* finish = std::get_if<sdp::FinishOperation>(&action)) {
    return Act(endpoint, *finish);
  }
  if (const auto* receive = std::get_if<sdp::PostReceive>(&action)) return Act(endpoint, *receive);
  std::visit([&](const auto& one) { Act(endpoint, one); }, action);
}

// Its operation has no name, and is not in the table: what the core says of it is done here. What
// it says of others in the same step goes the usual way.
std::optional<uint64_t> Driver::SendImmediate(Endpoint& endpoint, const sdp::Input& ask,
                                              ConstBytes bytes) try {
  uint64_t stream_offset = 0;
  actions_.clear();
  endpoint.core.Step(ask, now_, actions_);
  for (const sdp::Action& action : actions_) {
    const auto* copy = std::get_if<sdp::CopyOut>(&action);
    const auto* finish = std::get_if<sdp::FinishOperation>(&action);
    if (copy != nullptr && copy->source.operation == sdp::kNoOperation) {
      CopyToBuffer(endpoint, *copy, bytes);
    } else if (finish != nullptr && finish->operation == sdp::kNoOperation) {
      stream_offset = finish->stream_offset;
    } else {
      CarryOut(endpoint, action);
    }
  }
  Flush();
  FeedAnswers(endpoint);
  return stream_offset;
} catch (const std::bad_alloc&) {
  Condemn(endpoint);
  return std::nullopt;
}

void Driver::ForgetEnded(Endpoint& endpoint) {
  Move(endpoint.visibility, VisibilityCue::kEnded);
  Move(endpoint.phase, QueuePairCue::kClosed);
  CountGrowth(endpoint);
  timers_.ClearAll(endpoint.id);
  ended_.push_back(&endpoint);
}

void Driver::NoteEnd(Endpoint& endpoint) {
  ForgetEnded(endpoint);
  const Failure none;
  const Failure& failure =
      endpoint.cause == sdp::Outcome::kDone ? none : RootCause(endpoint, endpoint.cause);
  if (IsKnown(endpoint.visibility)) {
    const sdp::Counters& counters = endpoint.core.counters();
    return observer_.OnClosed(endpoint.id, failure,
                              counters.bytes_received_copied + counters.bytes_received_zero_copy);
  }
  if (!endpoint.connecting) WriteLog(failure.text);
}

void Driver::Condemn(Endpoint& endpoint) {
  if (HasEnded(endpoint.visibility)) return;
  actions_.clear();
  answers_.clear();
  expose_answers_.clear();
  if (staged_ == &endpoint) {
    staged_ = nullptr;
    batch_.Clear();
  }
  endpoint.failure = NoMemory();
  endpoint.cause = sdp::Outcome::kInternal;
  ForgetEnded(endpoint);
  fabric::Fabric& fabric = *endpoint.fabric;
  set_up_.RejectRequest(endpoint);
  set_up_.StopReturn(endpoint);
  // No memory of an operation is told to be free before the queue pair is gone.
  (void)fabric.Disconnect(endpoint.queue_pair, /*orderly=*/false);
  (void)fabric.DestroyQueuePair(endpoint.queue_pair);
  withdrawn_.clear();
  endpoint.exposures.ReleaseAll(fabric, withdrawn_);
  const bool known = IsKnown(endpoint.visibility);
  if (known) observer_.OnFailed(endpoint.id, *endpoint.failure);
  FinishAll(endpoint);
  if (!known) return;
  const sdp::Counters& counters = endpoint.core.counters();
  observer_.OnClosed(endpoint.id, *endpoint.failure,
                     counters.bytes_received_copied + counters.bytes_received_zero_copy);
}

void Driver::FinishAll(Endpoint& endpoint) {
  const Failure& failure = *endpoint.failure;
  TransferResult result;
  result.ending = failure.ending;
  result.failure = &failure;
  operations_.TakeAllOf(endpoint.id, [&](sdp::OperationId id, const Operation& operation) {
    switch (operation.kind) {
      case Operation::Kind::kTransfer:
        timers_.ClearDeadline(id);
        for (const Piece& piece : operation.transfer->pieces) piece.region->RemoveOperation();
        return observer_.OnTransferFinished(endpoint.id, *operation.transfer, result);
      case Operation::Kind::kShutdown:
        return observer_.OnShutDown(endpoint.id, failure);
      case Operation::Kind::kSuspend:
        return observer_.OnResumed(endpoint.id, failure);
      case Operation::Kind::kClose:
        return;
    }
  });
}

// --- completions ---------------------------------------------------------------------------------

void Driver::FeedCompletion(Endpoint& endpoint, const fabric::Completion& completion) {
  if (!TakesWork(endpoint.phase)) return;
  if (completion.status != fabric::WorkStatus::kSuccess) {
    // The queue pair is leaving the ready state. The core hears of it once, when nothing is out any
    // more.
    endpoint.evidence.NoteWork(completion.status);
    return;
  }
  switch (completion.opcode) {
    case fabric::Opcode::kSend:
      return Feed(endpoint, sdp::SendFinished{});
    case fabric::Opcode::kRead:
      return Feed(endpoint, sdp::ReadFinished{});
    case fabric::Opcode::kWrite:
      return Feed(endpoint, sdp::WriteFinished{});
    case fabric::Opcode::kReceive:
      return Receive(endpoint, completion);
    case fabric::Opcode::kInvalidate: {
      const sdp::AdvertId advert{static_cast<uint32_t>(completion.work_id)};
      endpoint.exposures.Withdrawn(advert);
      return Feed(endpoint, sdp::Withdrawn{advert});
    }
  }
}

uint64_t Driver::WrittenFor(const Endpoint& endpoint, const fabric::Completion& completion) {
  if (completion.has_invalidated) return completion.written;
  const auto key = endpoint.core.oldest_sink_key();
  return key ? endpoint.fabric->Written(endpoint.queue_pair, *key) : fabric::kWrittenUnknown;
}

void Driver::Receive(Endpoint& endpoint, const fabric::Completion& completion) {
  const uint32_t buffer = static_cast<uint32_t>(completion.work_id);
  const Bytes memory = endpoint.pool.ReceiveBuffer(buffer);
  if (completion.byte_length > memory.size())
    return Fault(endpoint, "a receive longer than its buffer");
  sdp::Input input{std::in_place_type<sdp::MessageArrived>};
  auto& arrived = *std::get_if<sdp::MessageArrived>(&input);
  arrived.buffer = sdp::ReceiveBuffer{static_cast<uint16_t>(buffer)};
  if (completion.has_invalidated) {
    endpoint.exposures.Invalidated(completion.invalidated_key);
    arrived.invalidated_key = completion.invalidated_key;
  }
  const ConstBytes bytes = memory.first(completion.byte_length);
  if (const auto error = sdp::wire::Decode(bytes, arrived.message)) {
    if (endpoint.cause == sdp::Outcome::kDone) endpoint.evidence.message_field = error->field;
    return Feed(endpoint, sdp::MessageRefused{error->reason});
  }
  if (std::holds_alternative<sdp::wire::RdmaWrCompl>(arrived.message.body)) {
    arrived.written = WrittenFor(endpoint, completion);
  }
  const size_t header = sdp::wire::HeaderBytes(sdp::wire::IdOf(arrived.message));
  arrived.payload_offset = static_cast<uint32_t>(header);
  arrived.payload_length = static_cast<uint32_t>(bytes.size() - header);
  Feed(endpoint, input);
}

void Driver::FeedLoss(Endpoint& endpoint) {
  if (!TakesWork(endpoint.phase)) return;
  Move(endpoint.phase, QueuePairCue::kLost);
  withdrawn_.clear();
  endpoint.exposures.ReleaseAll(*endpoint.fabric, withdrawn_);
  for (const sdp::AdvertId advert : withdrawn_) Feed(endpoint, sdp::Withdrawn{advert});
  Feed(endpoint, sdp::ConnectionLost{IsCleanEnd(endpoint.evidence),
                                     IsFabricError(endpoint.evidence), IsReset(endpoint.evidence)});
}

// --- posting -------------------------------------------------------------------------------------

void Driver::Stage(Endpoint& endpoint) {
  if (staged_ != &endpoint) Flush();
  staged_ = &endpoint;
}

WorkBatch::NextSend Driver::StageSend(Endpoint& endpoint) {
  if (batch_.sends_full()) Flush();
  Stage(endpoint);
  return batch_.next_send();
}

void Driver::Post() {
  Endpoint* endpoint = std::exchange(staged_, nullptr);
  if (batch_.empty()) return;
  try {
    const absl::Status status = batch_.Post(*endpoint->fabric, endpoint->queue_pair);
    if (!status.ok()) Break(*endpoint, status);
  } catch (const std::bad_alloc&) {
    // Not condemned: this may be in the middle of a step of its core.
    batch_.Clear();
    Break(*endpoint, absl::ResourceExhaustedError("no memory"));
  }
}

void Driver::Break(Endpoint& endpoint, const absl::Status& why) {
  if (!TakesWork(endpoint.phase)) return;
  if (IsSettingUp(endpoint.phase)) {
    Move(endpoint.phase, QueuePairCue::kFailed);
    endpoint.evidence.NoteRefusal(why);
    return;
  }
  // Once the end has begun its kDisconnected brings the cause, and `why` is but a sequel. What
  // still leaves before an orderly end is not cut short for it.
  if (endpoint.phase == QueuePairPhase::kEnding) return;
  if (endpoint.fabric->Disconnect(endpoint.queue_pair, false).ok())
    endpoint.evidence.NoteRefusal(why);
}

void Driver::Fault(Endpoint& endpoint, const char* what) {
  ReportCheckFailure(what, __FILE__, __LINE__);
  Break(endpoint, absl::InternalError(std::string("a fault of this library: ") + what));
}

// --- the application -----------------------------------------------------------------------------

const Failure& Driver::RootCause(Endpoint& endpoint, sdp::Outcome outcome) {
  if (endpoint.failure) return *endpoint.failure;
  const char* reason = endpoint.reason;
  // Operations finish before the report of the end, in the same step.
  for (const sdp::Action& action : actions_) {
    const auto* report = std::get_if<sdp::ReportClosed>(&action);
    if (report != nullptr && *reason == '\0') reason = report->reason;
  }
  try {
    const bool incoming = !endpoint.connecting && !IsKnown(endpoint.visibility) && !endpoint.moved;
    endpoint.failure = Explain(outcome, reason, endpoint.evidence, endpoint.peer,
                               incoming ? SetUp::kIncoming : SetUp::kOwn);
    if (endpoint.attempt) endpoint.failure->text += endpoint.attempt->failures;
  } catch (const std::bad_alloc&) {
    endpoint.failure = NoMemory();
  }
  if (IsKnown(endpoint.visibility) && endpoint.failure->ending != EndReason::kOk) {
    observer_.OnFailed(endpoint.id, *endpoint.failure);
  }
  return *endpoint.failure;
}

void Driver::Act(Endpoint& endpoint, const sdp::FinishOperation& action) {
  const Operation* found = operations_.Find(action.operation);
  if (found == nullptr || found->connection != endpoint.id) {
    return Fault(endpoint, "the end of an operation that is not there");
  }
  const Operation::Kind kind = found->kind;
  Transfer* const transfer = found->transfer;
  operations_.Erase(action.operation);
  if (eager_) Flush();
  if (kind == Operation::Kind::kTransfer) {
    if (transfer->deadline != kTimeInfinite) timers_.ClearDeadline(action.operation);
    return FinishTransfer(endpoint, *transfer, action);
  }
  if (kind == Operation::Kind::kSuspend) return FinishSuspend(endpoint, action.outcome);
  if (kind != Operation::Kind::kShutdown) return;
  const bool of_connection = IsOfConnection(action.outcome);
  const Failure own{EndingOfOperation(action.outcome), ""};
  observer_.OnShutDown(endpoint.id, of_connection ? RootCause(endpoint, action.outcome) : own);
}

void Driver::FinishSuspend(Endpoint& endpoint, sdp::Outcome outcome) {
  set_up_.StopReturn(endpoint);
  endpoint.move.reset();
  if (IsOfConnection(outcome)) {
    observer_.OnResumed(endpoint.id, RootCause(endpoint, outcome));
  } else {
    observer_.OnResumed(endpoint.id, ExplainSuspend(outcome, endpoint.peer));
  }
}

void Driver::FinishTransfer(Endpoint& endpoint, Transfer& transfer,
                            const sdp::FinishOperation& action) {
  for (const Piece& piece : transfer.pieces) piece.region->RemoveOperation();
  TransferResult result;
  result.ending = EndingOfOperation(action.outcome);
  if (IsOfConnection(action.outcome)) {
    result.failure = &RootCause(endpoint, action.outcome);
    result.ending = result.failure->ending;
  }
  result.end_of_stream = action.end_of_stream;
  result.urgent = action.urgent;
  result.written = action.written;
  result.bytes = action.bytes;
  result.bytes_zero_copy = action.bytes_zero_copy;
  result.stream_offset = action.stream_offset;
  observer_.OnTransferFinished(endpoint.id, transfer, result);
}

}  // namespace esdp::provider
