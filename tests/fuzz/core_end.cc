#include "tests/fuzz/core_end.h"

#include <algorithm>

#include "impl/sdp/wire/codec.h"

namespace esdp::sdp::fuzz {
namespace {

constexpr uint64_t kFirstAddress = 0x1000;
constexpr uint32_t kPayloadOffset = wire::kHeaderBytesMax;

Config Watched(Config config) {
  config.watch_readiness = true;
  return config;
}

}  // namespace

CoreEnd::CoreEnd(const Config& config, uint32_t reads_max)
    : config_(config), core_(Watched(config)), reads_max_(reads_max) {}

void CoreEnd::Feed(const Input& input) {
  Actions actions;
  core_.Step(input, now_, actions);
  for (const Action& action : actions) {
    Require(!to_expose_ || !std::holds_alternative<sdp::Send>(action));
    std::visit([this](const auto& it) { Act(it); }, action);
  }
  AnswerExpose();  // before anything else
  if (std::exchange(to_prepare_, false)) Feed(ReceivesPrepared{config_.send_buffers % 2 == 0});
}

void CoreEnd::AnswerExpose() {
  if (!to_expose_) return;
  const AdvertId advert = *to_expose_;
  to_expose_.reset();
  Exposure& exposure = exposures_.at(advert);
  if (!config_.can_expose) {
    --operations_.at(exposure.range.operation).exposures;
    exposures_.erase(advert);
    Feed(ExposeFailed{advert});
    return;
  }
  exposure.remote = {next_key_++, kFirstAddress + exposure.range.offset};
  Feed(Exposed{advert, exposure.remote});
}

void CoreEnd::SetUp(const wire::Message* peer_hello, const wire::Message* peer_hello_ack,
                    uint32_t peer_reads_max) {
  if (peer_hello != nullptr) {
    Feed(HelloArrived{*peer_hello});
    if (rejected_) return;
  }
  Established established;
  if (peer_hello_ack != nullptr) established.hello_ack = *peer_hello_ack;
  established.reads_out_max = reads_max_;
  established.reads_in_max = peer_reads_max;
  peer_buffers_ = (peer_hello != nullptr ? peer_hello : peer_hello_ack)->base.buffers;
  Feed(established);
}

// --- the application ---

OperationId CoreEnd::NewOperation(Operation::Kind kind, uint32_t length) {
  const OperationId id{next_operation_++};
  Operation operation;
  operation.kind = kind;
  operation.memory.resize(length);
  operations_.emplace(id, std::move(operation));
  ++pending_;
  return id;
}

void CoreEnd::AskToSend(Drawn& drawn) {
  if (pending_ > 40) return;
  constexpr uint32_t kLengths[] = {0, 1, 2, 20, 190, 300, 1024, 1500, 4000};
  const uint32_t length = drawn.OneOf(kLengths);
  const uint8_t traits = drawn.Byte();
  AskSend ask;
  ask.path = Path{static_cast<uint8_t>(traits % 3)};
  ask.complete_at = (traits & 8) != 0 ? CompleteAt::kDelivered : CompleteAt::kReusable;
  ask.exposable = (traits & 16) == 0;
  ask.zcopy_min = (traits & 32) != 0 ? 0 : 1000;
  ask.urgent = (traits & 128) != 0 && length > 2;
  const OperationId id = NewOperation(Operation::Kind::kSend, length);
  for (uint8_t& byte : operations_.at(id).memory) byte = ByteAt(asked_++);
  if (shut_) asked_ -= length;
  const uint32_t first = (traits & 64) != 0 && length > 2 ? length / 3 : length;
  ask.piece = {id, first, 0};
  ask.more = first < length;
  Feed(ask);
  if (first == length) return;
  ask.piece = {id, length - first, first};
  ask.more = false;
  Feed(ask);
}

void CoreEnd::AskToReceive(uint32_t length, Drawn& drawn) {
  if (pending_ > 40) return;
  const uint8_t traits = drawn.Byte();
  AskReceive ask;
  ask.piece = {NewOperation(Operation::Kind::kReceive, length), length, 0};
  ask.path = Path{static_cast<uint8_t>(traits % 3)};
  ask.wait_all = (traits & 8) != 0;
  ask.placeable = (traits & 16) == 0;
  ask.zcopy_min = (traits & 32) != 0 ? 0 : 1000;
  ask.until_advert = (traits & 64) != 0;
  ask.shown = (traits & 128) == 0;
  Feed(ask);
}

void CoreEnd::Cancel(Drawn& drawn) {
  const uint8_t which = drawn.Byte();
  const OperationId id{next_operation_ - 1 - which % 8u};
  const auto found = operations_.find(id);
  if (found == operations_.end() || found->second.kind == Operation::Kind::kOther) return;
  cancelled_ = true;
  constexpr CancelMode kModes[] = {CancelMode::kIfNotStarted, CancelMode::kEndShort,
                                   CancelMode::kAbortConnection, CancelMode::kAbortConnection};
  Feed(AskCancel{id, kModes[which >> 6], Outcome::kCancelled});
}

void CoreEnd::Await() {
  if (pending_ > 40) return;
  Feed(AskUrgent{NewOperation(Operation::Kind::kOther, 0)});
}

void CoreEnd::Want(uint8_t modes) {
  Feed(AskMode{ModeWish{static_cast<uint8_t>(modes % 4)},
               ModeWish{static_cast<uint8_t>(modes / 4 % 4)}});
}

void CoreEnd::Shut() {
  if (pending_ > 40) return;
  shut_ = true;
  Feed(AskShutdown{NewOperation(Operation::Kind::kOther, 0)});
}

void CoreEnd::Close(bool abort) {
  if (closing_) return;
  shut_ = closing_ = true;
  Feed(AskClose{NewOperation(Operation::Kind::kOther, 0), abort});
}

bool CoreEnd::pending_receive() const {
  return std::any_of(operations_.begin(), operations_.end(), [](const auto& it) {
    return it.second.kind == Operation::Kind::kReceive && !it.second.finished;
  });
}

// --- the fabric ---

bool CoreEnd::FinishSend() {
  if (sends_.empty()) return false;
  const sdp::Send send = sends_.front();
  sends_.pop_front();
  for (uint32_t i = 0; i < send.gather_count; ++i) {
    --operations_.at(send.gather[i].operation).gathers;
  }
  if (send.send_buffer) send_buffers_out_.erase(*send.send_buffer);
  Feed(SendFinished{});
  return true;
}

CoreEnd::Exposure* CoreEnd::Reach(uint32_t key, uint64_t address, uint32_t length, Right right) {
  for (auto& [advert, exposure] : exposures_) {
    if (!exposure.live || exposure.remote.key != key || exposure.right != right) continue;
    if (address < exposure.remote.address) return nullptr;
    const uint64_t offset = address - exposure.remote.address;
    return offset + length <= exposure.range.length ? &exposure : nullptr;
  }
  return nullptr;
}

// Without a peer the bytes are those that a lying peer would show: any.
bool CoreEnd::FinishRead(CoreEnd* peer) {
  if (reads_.empty()) return false;
  const Read read = reads_.front();
  if (peer != nullptr) {
    if (peer->lost_) return false;
    Exposure* exposure =
        peer->Reach(read.source.key, read.source.address, read.target.length, Right::kRemoteRead);
    Require(exposure != nullptr || !peer_is_honest);
    if (exposure == nullptr) return false;
    const uint64_t offset = read.source.address - kFirstAddress;
    const uint8_t* from = peer->At({exposure->range.operation, read.target.length, offset});
    std::copy_n(from, read.target.length, At(read.target));
  }
  reads_.pop_front();
  --operations_.at(read.target.operation).reads;
  Feed(ReadFinished{});
  return true;
}

bool CoreEnd::FinishWrite() {
  if (writes_.empty()) return false;
  --operations_.at(writes_.front().source.operation).writes;
  writes_.pop_front();
  Feed(WriteFinished{});
  return true;
}

bool CoreEnd::FinishWithdrawal() {
  if (withdrawing_.empty()) return false;
  const AdvertId advert = withdrawing_.front();
  withdrawing_.pop_front();
  Exposure& exposure = exposures_.at(advert);
  exposure.live = false;
  --operations_.at(exposure.range.operation).exposures;
  Feed(Withdrawn{advert});
  return true;
}

bool CoreEnd::FireTimer() {
  if (timers_.empty() || lost_) return false;
  const auto first = std::min_element(timers_.begin(), timers_.end(), [](auto& one, auto& other) {
    return one.second < other.second;
  });
  now_ = std::max(now_, first->second);
  const Timer timer = first->first;
  timers_.erase(first);
  Feed(TimerFired{timer});
  return true;
}

Time CoreEnd::next_timer() const {
  Time next = kTimeInfinite;
  for (const auto& [timer, at] : timers_) next = std::min(next, at);
  return next;
}

bool CoreEnd::Arrive(const wire::Message& message, const std::vector<uint8_t>& payload,
                     std::optional<uint32_t> invalidate) {
  if (lost_ || posted_.empty()) return false;
  MessageArrived arrived;
  arrived.buffer = posted_.front().buffer;
  arrived.payload_offset = kPayloadOffset;
  arrived.payload_length = static_cast<uint32_t>(payload.size());
  std::vector<std::byte> bytes(wire::HeaderBytes(wire::IdOf(message)) + payload.size());
  if (bytes.size() > posted_.front().bytes) return false;
  posted_.pop_front();
  wire::Encode(message, payload.size(), bytes);
  received_bytes_[arrived.buffer] = payload;
  if (const auto error = wire::Decode(bytes, arrived.message)) {
    Feed(MessageRefused{error->reason});
    return true;
  }
  for (auto& [advert, exposure] : exposures_) {
    if (!invalidate || !exposure.live || exposure.remote.key != *invalidate) continue;
    exposure.live = false;
    arrived.invalidated_key = invalidate;
  }
  peer_buffers_ = arrived.message.base.buffers;
  peer_acknowledged_ = arrived.message.base.acknowledged;
  Feed(arrived);
  return true;
}

void CoreEnd::Place(const Write& write, const std::vector<uint8_t>& bytes) {
  if (lost_) return;
  const auto length = static_cast<uint32_t>(bytes.size());
  Exposure* exposure = Reach(write.target.key, write.target.address, length, Right::kRemoteWrite);
  Require(exposure != nullptr || !peer_is_honest);
  if (exposure == nullptr) return;
  const uint64_t offset = write.target.address - kFirstAddress;
  std::copy_n(bytes.begin(), length, At({exposure->range.operation, length, offset}));
}

void CoreEnd::Lose(bool clean, bool fabric_error) {
  if (lost_) return;
  // As the provider does: withdrawals under way have ended before the core hears of the loss, and
  // what else was shown goes with the queue pair.
  while (FinishWithdrawal()) {
  }
  lost_ = true;
  if (!clean || (disconnect_ && !disconnect_->orderly)) outgoing.clear();
  sends_.clear();
  reads_.clear();
  writes_.clear();
  posted_.clear();
  timers_.clear();
  exposures_.clear();
  // It touches nothing.
  for (auto& [id, it] : operations_) it.gathers = it.reads = it.writes = it.exposures = 0;
  Feed(ConnectionLost{clean, fabric_error});
}

void CoreEnd::RequireOver() const {
  Require(pending_ == 0);
  Require(core_.closed());
}

// --- what the core does ---

bool CoreEnd::IsPosted(ReceiveBuffer buffer) const {
  return std::any_of(posted_.begin(), posted_.end(),
                     [&](const PostReceive& it) { return it.buffer == buffer; });
}

uint8_t* CoreEnd::At(const OperationRange& range) {
  const auto found = operations_.find(range.operation);
  Require(found != operations_.end() && !found->second.finished);
  Require(range.offset + range.length <= found->second.memory.size());
  return found->second.memory.data() + range.offset;
}

void CoreEnd::Act(const ReplaceQueuePair&) {
  Require(lost_);
  lost_ = connected_ = false;
  disconnect_.reset();
  last_sequence_ = 0;
}

void CoreEnd::Act(const ReportConnected&) {
  Require(!connected_);
  connected_ = true;
}

void CoreEnd::Act(const Disconnect& action) {
  Require(!disconnect_ || (disconnect_->orderly && !action.orderly));
  Require(action.cause != Outcome::kInternal);
  Require(action.cause != Outcome::kPeerProtocol || !peer_is_honest);
  disconnect_ = action;
}

void CoreEnd::Act(const ReportClosed& action) {
  Require(!cause_ && pending_ == 0 && action.cause != Outcome::kInternal);
  cause_ = action.cause;
}

void CoreEnd::Act(const PostReceive& action) {
  Require(!lost_ && !IsPosted(action.buffer));
  posted_.push_back(action);
}

void CoreEnd::Act(const sdp::Send& action) {
  Require(!lost_ && !disconnect_);
  Require(action.message.base.sequence == ++last_sequence_);
  // Credits by what the peer has told last, whatever that was. AbortConn may answer a message that
  // was refused: neither that one's header nor its receive buffer were counted.
  const bool aborts = std::holds_alternative<wire::AbortConn>(action.message.body);
  const int64_t credits =
      int64_t{peer_buffers_} - (int64_t{last_sequence_} - int64_t{peer_acknowledged_});
  Require(aborts || (credits >= 0 && action.message.base.buffers <= posted_.size()));
  Parcel parcel;
  parcel.message = action.message;
  parcel.invalidate = action.invalidate_key;
  for (uint32_t i = 0; i < action.gather_count; ++i) {
    const uint8_t* from = At(action.gather[i]);
    parcel.bytes.insert(parcel.bytes.end(), from, from + action.gather[i].length);
    ++operations_.at(action.gather[i].operation).gathers;
  }
  if (action.copied_bytes > 0) {
    parcel.bytes = copied_bytes_.at(*action.send_buffer);
    Require(parcel.bytes.size() == action.copied_bytes);
  }
  if (action.send_buffer) Require(send_buffers_out_.insert(*action.send_buffer).second);
  sends_.push_back(action);
  Require(sends_.size() + reads_.size() + writes_.size() <= config_.send_work_max);
  outgoing.push_back(std::move(parcel));
}

void CoreEnd::Act(const Read& action) {
  At(action.target);
  Require(action.target.length > 0 && action.target.length <= config_.read_bytes_max);
  ++operations_.at(action.target.operation).reads;
  reads_.push_back(action);
  Require(reads_.size() <= reads_max_);
}

void CoreEnd::Act(const Write& action) {
  const uint8_t* from = At(action.source);
  ++operations_.at(action.source.operation).writes;
  writes_.push_back(action);
  Parcel parcel;
  parcel.write = action;
  parcel.bytes.assign(from, from + action.source.length);
  outgoing.push_back(std::move(parcel));
}

void CoreEnd::Act(const CopyIn& action) {
  const std::vector<uint8_t>& from = received_bytes_.at(action.buffer);
  Require(!IsPosted(action.buffer));
  Require(action.buffer_offset >= kPayloadOffset);
  const uint32_t offset = action.buffer_offset - kPayloadOffset;
  Require(offset + action.target.length <= from.size());
  std::copy_n(from.begin() + offset, action.target.length, At(action.target));
}

void CoreEnd::Act(const CopyOut& action) {
  Require(send_buffers_out_.count(action.buffer) == 0);
  std::vector<uint8_t>& to = copied_bytes_[action.buffer];
  to.resize(action.buffer_offset);
  const uint8_t* from = At(action.source);
  to.insert(to.end(), from, from + action.source.length);
  Require(to.size() <= size_t{16} * 1024);
}

void CoreEnd::Act(const Expose& action) {
  At(action.range);
  Require(!to_expose_ && exposures_.count(action.advert) == 0);
  exposures_[action.advert] = {action.range, {}, action.right, true};
  ++operations_.at(action.range.operation).exposures;
  to_expose_ = action.advert;
}

void CoreEnd::Act(const Withdraw& action) {
  const auto found = exposures_.find(action.advert);
  Require(found != exposures_.end());
  Require(!action.already_invalidated || !found->second.live);
  withdrawing_.push_back(action.advert);
}

void CoreEnd::Act(const FinishOperation& action) {
  Operation& operation = operations_.at(action.operation);
  Require(!operation.finished && action.bytes <= operation.memory.size());
  Require(action.outcome != Outcome::kInternal && action.bytes_zero_copy <= action.bytes);
  if (!lost_) {
    Require(operation.gathers == 0 && operation.reads == 0);
    Require(operation.writes == 0 && operation.exposures == 0);
  }
  if (operation.kind == Operation::Kind::kReceive) {
    if (action.bytes > 0) Require(action.stream_offset == received_);
    for (uint64_t i = 0; content_is_known && i < action.bytes; ++i) {
      Require(operation.memory[i] == ByteAt(received_ + i));
    }
    received_ += action.bytes;
  }
  if (operation.kind == Operation::Kind::kSend) {
    if (action.outcome == Outcome::kDone) Require(action.bytes == operation.memory.size());
    sent_ += action.bytes;
  }
  operation.finished = true;
  operation.memory = {};
  --pending_;
}

}  // namespace esdp::sdp::fuzz
