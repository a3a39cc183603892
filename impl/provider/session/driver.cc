#include "impl/provider/session/driver.h"

#include <new>
#include <utility>

#include "impl/base/check.h"
#include "impl/provider/regions.h"
#include "impl/sdp/wire/codec.h"

namespace esdp::provider {
namespace {

static_assert(fabric::kLentHeadBytes >= sdp::wire::kHeaderBytesMax);

// So short that it takes none.
Failure NoMemory() { return {EndReason::kNoMemory, "no memory"}; }

}  // namespace

void Driver::Feed(Session& session, const sdp::Input& input) {
  try {
    RunStep(session, input);
    FeedAnswers(session);
  } catch (const std::bad_alloc&) {
    Condemn(session);
  }
}

void Driver::FeedAllAnswers(Session& session) {
  while (!expose_answers_.empty() || !answers_.empty()) {
    const sdp::Input answer =
        expose_answers_.empty() ? answers_.TakeFront() : expose_answers_.TakeFront();
    RunStep(session, answer);
  }
  if (session.core.closed() && !HasEnded(session.visibility)) NoteEnd(session);
}

void Driver::RunStep(Session& session, const sdp::Input& input) {
  session.core.Step(input, now_, actions_);
  // Whoever hears that an operation has ended, and looks what could be done now, is told of the
  // time behind it. Of a connection that this step announces it is told behind that.
  if (!actions_.empty() && std::holds_alternative<sdp::ReportReadiness>(actions_.back()) &&
      IsKnown(session.visibility)) {
    CarryOut(session, actions_.back());
    actions_.pop_back();
  }
  for (const sdp::Action& action : actions_) CarryOut(session, action);
}

// Those that come with each message first.
inline void Driver::CarryOut(Session& session, const sdp::Action& action) {
  if (const auto* send = std::get_if<sdp::Send>(&action)) return Act(session, *send);
  if (const auto* copy = std::get_if<sdp::CopyIn>(&action)) return Act(session, *copy);
  if (const auto* finish = std::get_if<sdp::FinishOperation>(&action)) {
    return Act(session, *finish);
  }
  if (const auto* receive = std::get_if<sdp::PostReceive>(&action)) return Act(session, *receive);
  std::visit([&](const auto& one) { Act(session, one); }, action);
}

// Its operation has no name, and is not in the table: what the core says of it is done here. What
// it says of others in the same step goes the usual way.
std::optional<uint64_t> Driver::SendImmediate(Session& session, const sdp::Input& ask,
                                              std::span<const ConstBytes> parts) try {
  uint64_t stream_offset = 0;
  session.core.Step(ask, now_, actions_);
  for (const sdp::Action& action : actions_) {
    const auto* copy = std::get_if<sdp::CopyOut>(&action);
    const auto* finish = std::get_if<sdp::FinishOperation>(&action);
    if (copy != nullptr && copy->source.operation == sdp::kNoOperation) {
      sdp::CopyOut part = *copy;
      for (const ConstBytes bytes : parts) {
        CopyToBuffer(session, part, bytes);
        part.buffer_offset += static_cast<uint32_t>(bytes.size());
      }
    } else if (finish != nullptr && finish->operation == sdp::kNoOperation) {
      stream_offset = finish->stream_offset;
    } else {
      CarryOut(session, action);
    }
  }
  Flush();
  FeedAnswers(session);
  return stream_offset;
} catch (const std::bad_alloc&) {
  Condemn(session);
  return std::nullopt;
}

void Driver::ForgetEnded(Session& session) {
  Move(session.visibility, VisibilityCue::kEnded);
  session.transport.Note(QueuePairCue::kClosed);
  growth_.Forget(session.transport);
  timers_.ClearAll(session.id);
  ended_.push_back(&session);
}

void Driver::NoteEnd(Session& session) {
  ForgetEnded(session);
  const Failure none;
  const Failure& failure =
      session.cause == sdp::Outcome::kDone ? none : RootCause(session, session.cause);
  if (IsKnown(session.visibility)) {
    const sdp::Counters& counters = session.core.counters();
    return observer_.OnClosed(session.id, failure,
                              counters.bytes_received_copied + counters.bytes_received_zero_copy);
  }
  if (!session.connecting) WriteLog(failure.text);
}

void Driver::Condemn(Session& session) {
  if (HasEnded(session.visibility)) return;
  actions_.clear();
  answers_.clear();
  expose_answers_.clear();
  posting_.Forget(session.transport);
  session.failure = NoMemory();
  session.cause = sdp::Outcome::kInternal;
  ForgetEnded(session);
  set_up_.RejectRequest(session);
  set_up_.StopReturn(session);
  // No memory of an operation is told to be free before the queue pair is gone.
  withdrawn_.clear();
  session.transport.Destroy(withdrawn_);
  const bool known = IsKnown(session.visibility);
  if (known) observer_.OnFailed(session.id, *session.failure);
  FinishAll(session);
  if (!known) return;
  const sdp::Counters& counters = session.core.counters();
  observer_.OnClosed(session.id, *session.failure,
                     counters.bytes_received_copied + counters.bytes_received_zero_copy);
}

void Driver::FinishAll(Session& session) {
  const Failure& failure = *session.failure;
  TransferResult result;
  result.ending = failure.ending;
  result.failure = &failure;
  operations_.TakeAllOf(session.id, [&](sdp::OperationId id, const Operation& operation) {
    switch (operation.kind) {
      case Operation::Kind::kTransfer:
        timers_.ClearDeadline(id);
        for (const Piece& piece : operation.transfer->pieces) piece.region->RemoveOperation();
        return observer_.OnTransferFinished(session.id, *operation.transfer, result);
      case Operation::Kind::kShutdown:
        return observer_.OnShutDown(session.id, failure);
      case Operation::Kind::kSuspend:
        return observer_.OnResumed(session.id, failure);
      case Operation::Kind::kClose:
        return;
    }
  });
}

// --- completions ---------------------------------------------------------------------------------

void Driver::FeedCompletion(Session& session, const fabric::Completion& completion) {
  if (!session.transport.TakesWork()) return;
  if (completion.status != fabric::WorkStatus::kSuccess) {
    // The queue pair is leaving the ready state. The core hears of it once, when nothing is out any
    // more.
    session.transport.failure().NoteWork(completion.status);
    return;
  }
  switch (completion.opcode) {
    case fabric::Opcode::kSend:
      return Feed(session, sdp::SendFinished{});
    case fabric::Opcode::kRead:
      return Feed(session, sdp::ReadFinished{});
    case fabric::Opcode::kWrite:
      return Feed(session, sdp::WriteFinished{});
    case fabric::Opcode::kReceive:
      return Receive(session, completion);
    case fabric::Opcode::kInvalidate: {
      const sdp::AdvertId advert{static_cast<uint32_t>(completion.work_id)};
      session.transport.exposures().Withdrawn(ExposureOf(advert));
      PostInvalidations(session.transport);
      return Feed(session, sdp::Withdrawn{advert});
    }
  }
}

uint64_t Driver::WrittenFor(const Session& session, const fabric::Completion& completion) {
  if (completion.has_invalidated) return completion.written;
  const auto key = session.core.oldest_sink_key();
  return key ? session.transport.fabric().Written(session.transport.queue_pair(), *key)
             : fabric::kWrittenUnknown;
}

void Driver::Receive(Session& session, const fabric::Completion& completion) {
  const uint32_t buffer = static_cast<uint32_t>(completion.work_id);
  const Bytes memory = session.transport.pool().ReceiveBuffer(buffer);
  if (completion.byte_length > memory.size())
    return Fault(session, "a receive longer than its buffer");
  sdp::Input input{std::in_place_type<sdp::MessageArrived>};
  auto& arrived = *std::get_if<sdp::MessageArrived>(&input);
  arrived.buffer = sdp::ReceiveBuffer{static_cast<uint16_t>(buffer)};
  if (completion.has_invalidated) {
    session.transport.exposures().Invalidated(completion.invalidated_key);
    arrived.invalidated_key = completion.invalidated_key;
  }
  const ConstBytes bytes = memory.first(completion.byte_length);
  if (const auto error = sdp::wire::Decode(bytes, arrived.message)) {
    if (session.cause == sdp::Outcome::kDone) session.message_field = error->field;
    return Feed(session, sdp::MessageRefused{error->reason});
  }
  if (std::holds_alternative<sdp::wire::RdmaWrCompl>(arrived.message.body)) {
    arrived.written = WrittenFor(session, completion);
  }
  const size_t header = sdp::wire::HeaderBytes(sdp::wire::IdOf(arrived.message));
  arrived.payload_offset = static_cast<uint32_t>(header);
  arrived.payload_length = static_cast<uint32_t>(bytes.size() - header);
  tap_.Received(session.id, now_, bytes.first(header), arrived.message, arrived.payload_length);
  if (completion.lent == nullptr) return Feed(session, input);
  // What the application has posted receives for comes straight out of the fabric's memory.
  session.transport.pool().Lend(buffer, ConstBytes(completion.lent, bytes.size()));
  Feed(session, input);
  session.transport.pool().Settle();
}

void Driver::FeedLoss(Session& session) {
  if (!session.transport.TakesWork()) return;
  withdrawn_.clear();
  session.transport.Lose(withdrawn_);
  for (const ExposureId id : withdrawn_) Feed(session, sdp::Withdrawn{AdvertOf(id)});
  const TransportFailure& failure = session.transport.failure();
  Feed(session, sdp::ConnectionLost{IsCleanEnd(failure), IsFabricError(failure), IsReset(failure)});
}

void Driver::Fault(Session& session, const char* what) {
  ReportCheckFailure(what, __FILE__, __LINE__);
  session.transport.Break(absl::InternalError(std::string("a fault of this library: ") + what));
}

// --- the application -----------------------------------------------------------------------------

const Failure& Driver::RootCause(Session& session, sdp::Outcome outcome) {
  if (session.failure) return *session.failure;
  const char* reason = session.reason;
  // Operations finish before the report of the end, in the same step.
  for (const sdp::Action& action : actions_) {
    const auto* report = std::get_if<sdp::ReportClosed>(&action);
    if (report != nullptr && *reason == '\0') reason = report->reason;
  }
  try {
    const bool incoming = !session.connecting && !IsKnown(session.visibility) && !session.moved;
    session.failure = Explain(outcome, reason, DetailsOf(session), session.peer,
                              incoming ? SetUp::kIncoming : SetUp::kOwn);
    session.failure->input_kept = session.core.input_kept();
    if (session.attempt) session.failure->text += session.attempt->failures;
  } catch (const std::bad_alloc&) {
    session.failure = NoMemory();
  }
  if (IsKnown(session.visibility) && session.failure->ending != EndReason::kOk) {
    observer_.OnFailed(session.id, *session.failure);
  }
  return *session.failure;
}

void Driver::Act(Session& session, const sdp::FinishOperation& action) {
  const Operation* found = operations_.Find(action.operation);
  if (found == nullptr || found->connection != session.id) {
    return Fault(session, "the end of an operation that is not there");
  }
  const Operation::Kind kind = found->kind;
  Transfer* const transfer = found->transfer;
  operations_.Erase(action.operation);
  if (eager_) Flush();
  if (kind == Operation::Kind::kTransfer) {
    if (transfer->deadline != kTimeInfinite) timers_.ClearDeadline(action.operation);
    return FinishTransfer(session, *transfer, action);
  }
  if (kind == Operation::Kind::kSuspend) return FinishSuspend(session, action.outcome);
  if (kind != Operation::Kind::kShutdown) return;
  const bool of_connection = IsOfConnection(action.outcome);
  const Failure own{EndingOfOperation(action.outcome), ""};
  observer_.OnShutDown(session.id, of_connection ? RootCause(session, action.outcome) : own);
}

void Driver::FinishSuspend(Session& session, sdp::Outcome outcome) {
  set_up_.StopReturn(session);
  session.move.reset();
  if (IsOfConnection(outcome)) {
    observer_.OnResumed(session.id, RootCause(session, outcome));
  } else {
    observer_.OnResumed(session.id, ExplainSuspend(outcome, session.peer));
  }
}

void Driver::FinishTransfer(Session& session, Transfer& transfer,
                            const sdp::FinishOperation& action) {
  for (const Piece& piece : transfer.pieces) piece.region->RemoveOperation();
  TransferResult result;
  result.ending = EndingOfOperation(action.outcome);
  if (IsOfConnection(action.outcome)) {
    result.failure = &RootCause(session, action.outcome);
    result.ending = result.failure->ending;
  }
  result.end_of_stream = action.end_of_stream;
  result.urgent = action.urgent;
  result.written = action.written;
  result.bytes = action.bytes;
  result.bytes_zero_copy = action.bytes_zero_copy;
  result.stream_offset = action.stream_offset;
  observer_.OnTransferFinished(session.id, transfer, result);
}

}  // namespace esdp::provider
