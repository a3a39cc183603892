#include "impl/fabric/verbs/queue_pair.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "impl/base/status.h"
#include "impl/fabric/verbs/work_number.h"

// A queue pair's life from its connection to its end, and its completions.

namespace esdp::fabric::verbs {
namespace {

constexpr Duration kFlushWait = std::chrono::seconds(1);
constexpr uint32_t kInlineWanted = 128;  // a small message whole, its header in front

// siw says IBV_WC_LOC_QP_OP_ERR of work that the end of the TCP connection has stopped.
bool IsStreamLost(ibv_wc_status status, bool iwarp) {
  return iwarp && status == IBV_WC_LOC_QP_OP_ERR;
}

WorkStatus StatusOf(ibv_wc_status status, bool iwarp) {
  if (IsStreamLost(status, iwarp)) return WorkStatus::kFlushed;
  switch (status) {
    case IBV_WC_SUCCESS:
      return WorkStatus::kSuccess;
    case IBV_WC_WR_FLUSH_ERR:
      return WorkStatus::kFlushed;
    case IBV_WC_LOC_LEN_ERR:
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
    case IBV_WC_MW_BIND_ERR:
      return WorkStatus::kLocalProtection;
    case IBV_WC_REM_ACCESS_ERR:
      return WorkStatus::kRemoteAccess;
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR:
      return WorkStatus::kRemoteOperation;
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return WorkStatus::kReceiverNotReady;
    default:
      return WorkStatus::kTransport;
  }
}

// What a completion with an error says of the connection, for people. rdma_rxe says
// IBV_WC_LOC_QP_OP_ERR where it has no route to the peer any more.
std::string DetailOf(ibv_wc_status status) {
  const std::string detail = ibv_wc_status_str(status);
  return status == IBV_WC_LOC_QP_OP_ERR
             ? detail + ": the device cannot send, as without a route to the peer"
             : detail;
}

// What it says to the program.
Cause CauseOf(const ibv_wc& completion, bool receive, bool iwarp) {
  if (IsStreamLost(completion.status, iwarp)) return Cause::kPeerReset;
  switch (completion.status) {
    case IBV_WC_WR_FLUSH_ERR:
      return Cause::kNone;  // the reason is elsewhere
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return Cause::kRemoteTerminate;
    case IBV_WC_LOC_LEN_ERR:
      return receive ? Cause::kProtocol : Cause::kDevice;
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
      return Cause::kPeerReset;
    default:
      return receive ? Cause::kProtocol : Cause::kDevice;
  }
}

}  // namespace

QueuePair::QueuePair(QueuePairId id, const QueuePairOptions& options, FabricShared& commons)
    : id_(id), tag_(TagOf(static_cast<uint64_t>(id))), options_(options), commons_(commons) {}

QueuePair::~QueuePair() {
  TakeAway();
  if (connection_ != nullptr) commons_.calls().destroy_id(connection_);
}

// --- the beginning ---

absl::Status QueuePair::Adopt(rdma_cm_id* id) {
  auto queue = commons_.completion_queues.Reserve(Entries());
  if (!queue.ok()) return queue.status();
  ibv_qp_init_attr attributes{};
  attributes.qp_context = &commons_.device_events;
  attributes.send_cq = attributes.recv_cq = *queue;
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap.max_send_wr = 2 * options_.send_work;
  attributes.cap.max_recv_wr = options_.receive_work;
  attributes.cap.max_send_sge = attributes.cap.max_recv_sge =
      commons_.device->limits().scatter_gather_max;
  attributes.cap.max_inline_data = kInlineWanted;
  int error = commons_.calls().create_qp(id, commons_.device->domain(), &attributes);
  if (error != 0 && errno == EINVAL) {
    attributes.cap.max_inline_data = 0;
    error = commons_.calls().create_qp(id, commons_.device->domain(), &attributes);
  }
  if (error != 0) {
    commons_.completion_queues.Release(*queue, Entries());
    // The connection manager has let go of the connection.
    if (errno == EINVAL) return absl::NotFoundError("the peer has given up the connection");
    return MakeStatus(absl::StatusCode::kResourceExhausted,
                      std::string("the device makes no queue pair: ") + strerror(errno));
  }
  inline_max_ = attributes.cap.max_inline_data;
  connection_ = id;
  verbs_ = id->qp;
  completion_queue_ = *queue;
  return PostWaitingReceives();
}

void QueuePair::Establish(const Agreed& agreed, ConstBytes private_data) {
  phase_ = Phase::kReady;
  agreed_ = agreed;
  PushEvent(RendezvousType::kEstablished, private_data);
}

QueuePair::Left QueuePair::Leave() {
  // Before the memory of its receives is given back.
  StopDevice();
  connection_ = nullptr;
  verbs_ = nullptr;
  return {.completion_queue = completion_queue_, .entries = Entries()};
}

void QueuePair::FailStartup(Cause cause, std::string detail, ConstBytes private_data) {
  cause_ = cause;
  detail_ = std::move(detail);
  silent_end_ = true;
  phase_ = Phase::kEnding;
  TellHeld();
  TakeAway();
  MaybeEnded();
  PushEvent(RendezvousType::kConnectFailed, private_data);
}

void QueuePair::OnAnnounced() {
  announced_ = true;
  TellHeld();
  MaybeEnded();
}

// --- completions ---

void QueuePair::TellHeld() {
  while (!held_.empty()) commons_.outbox.PushBack(held_.TakeFront());
}

void QueuePair::Release(GrowingRing<RegionId>& held, uint32_t count) {
  for (; count > 0; --count) commons_.regions.Release(held.TakeFront());
}

void QueuePair::Tell(const Completion& completion) {
  if (completion.opcode == Opcode::kReceive && !announced_ && phase_ != Phase::kEnded &&
      !silent_end_) {
    held_.PushBack(completion);
  } else {
    commons_.outbox.PushBack(completion);
  }
}

void QueuePair::FinishSend() {
  const SendSlot slot = sends_.TakeFront();
  ++first_send_;
  Release(send_regions_, slot.regions);
  if (slot.internal) {
    --internal_;
    return;
  }
  if (slot.opcode == Opcode::kInvalidate && slot.status == WorkStatus::kSuccess) {
    commons_.regions.Invalidated(id_, slot.key);
  }
  ++told_sends_;
  Tell({.queue_pair = id_, .work_id = slot.work_id, .opcode = slot.opcode, .status = slot.status});
}

void QueuePair::FinishReceive(WorkStatus status, const ibv_wc& completion) {
  const ReceiveSlot slot = receives_.TakeFront();
  Release(receive_regions_, slot.regions);
  ++told_receives_;
  Completion told{
      .queue_pair = id_, .work_id = slot.work_id, .opcode = Opcode::kReceive, .status = status};
  if (status == WorkStatus::kSuccess) {
    told.byte_length = completion.byte_len;
    if ((completion.wc_flags & IBV_WC_WITH_INV) != 0) {
      told.has_invalidated = true;
      told.invalidated_key = completion.invalidated_rkey;
      commons_.regions.Invalidated(id_, told.invalidated_key);
    }
  }
  Tell(told);
}

void QueuePair::OnSendCompletion(const ibv_wc& completion) {
  const uint64_t number = NumberOf(completion.wr_id);
  if (number < first_send_ || number >= first_send_ + sends_.size()) return;
  const bool alone = commons_.device->is_iwarp();
  const auto finish = [this](uint64_t each, WorkStatus status) {
    SendSlot& slot = sends_[static_cast<size_t>(each - first_send_)];
    slot.done = true;
    slot.status = status;
  };
  // Where only some ask for a completion of their own, those before it are done too.
  for (uint64_t each = first_send_; !alone && each < number; ++each) {
    finish(each, WorkStatus::kSuccess);
  }
  finish(number, StatusOf(completion.status, alone));
  while (!sends_.empty() && sends_.front().done) FinishSend();
}

void QueuePair::OnReceiveCompletion(const ibv_wc& completion) {
  if (!receives_.empty())
    FinishReceive(StatusOf(completion.status, commons_.device->is_iwarp()), completion);
}

void QueuePair::OnCompletion(const ibv_wc& completion) {
  if (TagIn(completion.wr_id) != tag_) return;
  const bool receive = IsReceive(completion.wr_id);
  if (completion.status != IBV_WC_SUCCESS) {
    const Cause cause = CauseOf(completion, receive, commons_.device->is_iwarp());
    if (cause != Cause::kNone) End(cause, DetailOf(completion.status));
  }
  if (receive) {
    OnReceiveCompletion(completion);
  } else {
    OnSendCompletion(completion);
  }
  if (phase_ == Phase::kClosing && sends_.empty()) End(Cause::kLocalDisconnect, "");
  MaybeEnded();
}

void QueuePair::OnAsynchronous(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_COMM_EST:
      // The first message has overtaken the manager's own: without a word from here the accepting
      // side would wait for that one, which may be lost.
      commons_.calls().notify(connection_, type);
      return;
    case IBV_EVENT_QP_ACCESS_ERR:
      return End(Cause::kLocalAccess, "the peer asked for memory that it was not shown");
    case IBV_EVENT_QP_REQ_ERR:
      // siw says so of a read that it could not answer: refused, or to a peer that is gone.
      if (commons_.device->is_iwarp()) {
        return End(Cause::kPeerDisconnect, "a read of the peer was not answered");
      }
      return End(Cause::kProtocol, "the peer's request was invalid");
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_DEVICE_FATAL:
      return End(Cause::kDevice, ibv_event_type_str(type));
    default:
      return;
  }
}

// --- the end ---

absl::Status QueuePair::Disconnect(bool orderly) {
  if (phase_ != Phase::kReady && (orderly || phase_ != Phase::kClosing)) {
    return absl::FailedPreconditionError("the queue pair is not connected");
  }
  phase_ = Phase::kClosing;
  if (!orderly || sends_.empty()) End(Cause::kLocalDisconnect, "");
  return absl::OkStatus();
}

// Leaves the ready state: what is posted is flushed by the device.
void QueuePair::End(Cause cause, std::string detail) {
  if (phase_ != Phase::kReady && phase_ != Phase::kClosing) return;
  cause_ = cause;
  detail_ = std::move(detail);
  phase_ = Phase::kEnding;
  flush_deadline_ = commons_.clock->Now() + kFlushWait;
  commons_.flushes.PushBack({id_, flush_deadline_});
  if (commons_.calls().disconnect(connection_) != 0) StopDevice();
  MaybeEnded();
}

void QueuePair::StopDevice() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  commons_.calls().modify_qp(verbs_, &attributes, IBV_QP_STATE);
}

void QueuePair::MaybeEnded() {
  if (phase_ != Phase::kEnding || !sends_.empty() || !receives_.empty()) return;
  if (!announced_ && !silent_end_) return;
  phase_ = Phase::kEnded;
  flush_deadline_ = kTimeInfinite;
  if (!silent_end_) PushEvent(RendezvousType::kDisconnected, {});
}

void QueuePair::OnFlushDeadline() {
  flush_deadline_ = kTimeInfinite;
  TakeAway();
  MaybeEnded();
}

// Without its ibv_qp nothing of it moves any more: what the device has not flushed is flushed here.
void QueuePair::TakeAway() {
  if (verbs_ != nullptr) {
    commons_.calls().destroy_qp(connection_);
    commons_.completion_queues.Release(completion_queue_, Entries());
    verbs_ = nullptr;
  }
  while (!sends_.empty()) FinishSend();
  while (!receives_.empty()) FinishReceive(WorkStatus::kFlushed, ibv_wc{});
}

void QueuePair::Destroy() {
  silent_end_ = true;
  commons_.regions.DropAll(id_);
  if (phase_ == Phase::kReady || phase_ == Phase::kClosing) End(Cause::kLocalDisconnect, "");
  TellHeld();
  phase_ = Phase::kEnding;
  TakeAway();
  MaybeEnded();
}

void QueuePair::PushEvent(RendezvousType type, ConstBytes private_data) {
  RendezvousEvent event;
  event.type = type;
  event.queue_pair = id_;
  event.cause = cause_;
  event.detail = detail_;
  event.local = agreed_.local;
  event.peer = agreed_.peer;
  event.initiator_depth = agreed_.initiator_depth;
  event.responder_resources = agreed_.responder_resources;
  event.private_data_bytes = static_cast<uint16_t>(private_data.size());
  CopyBytes(Bytes(event.private_data).first(private_data.size()), private_data);
  commons_.outbox.PushBack(std::move(event));
}

}  // namespace esdp::fabric::verbs
