#include "tests/sdp/side.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "impl/base/bytes.h"
#include "impl/sdp/common/limits.h"

namespace esdp::sdp::testing {
namespace {

Config Watched(Config config) {
  config.watch_readiness = true;
  return config;
}

}  // namespace

Side::Side(const Config& config, const char* name)
    : name_(name), config_(config), core_(Watched(config)), connecting_(config.connecting) {}

// --- the application ---

OperationId Side::NewOperation(SimOperation::Kind kind, const std::vector<uint32_t>& pieces) {
  const OperationId id{next_operation_++};
  SimOperation operation;
  operation.kind = kind;
  size_t length = 0;
  for (const uint32_t piece : pieces) length += piece;
  operation.memory.resize(length);
  if (kind == SimOperation::Kind::kSend) {
    Random content(static_cast<uint32_t>(id) * 77u + static_cast<unsigned char>(name_[0]));
    for (std::byte& byte : operation.memory) byte = static_cast<std::byte>(content.Next());
    send_order_.push_back(id);
  }
  operations_.emplace(id, std::move(operation));
  expected_[kind].push_back(id);
  ++pending_;
  return id;
}

OperationId Side::AskToSend(const SendOptions& options) {
  const OperationId id = NewOperation(SimOperation::Kind::kSend, options.pieces);
  operations_.at(id).urgent = options.urgent;
  const bool small = options.pieces.size() == 1 && options.pieces[0] > 0 &&
                     options.pieces[0] <= std::min<uint64_t>(config_.coalesce_max, 500) &&
                     options.pieces[0] < options.zcopy_min && options.path != Path::kZeroCopy;
  const bool promised = small && readiness_ && readiness_->writable;
  uint64_t offset = 0;
  for (size_t i = 0; i < options.pieces.size(); ++i) {
    AskSend ask;
    ask.piece = {id, options.pieces[i], offset};
    ask.more = i + 1 < options.pieces.size();
    ask.exposable = options.exposable;
    ask.path = options.path;
    ask.complete_at = options.complete_at;
    ask.zcopy_min = options.zcopy_min;
    ask.urgent = options.urgent;
    offset += options.pieces[i];
    if (core_.MaySendImmediate(ask)) ++immediate_sends_;
    Feed(ask);
  }
  if (promised) {
    EXPECT_EQ(copied_out_, id) << name_ << ": it is not writable";
  }
  return id;
}

OperationId Side::AskToReceive(const ReceiveOptions& options) {
  const OperationId id = NewOperation(SimOperation::Kind::kReceive, options.pieces);
  uint64_t offset = 0;
  for (size_t i = 0; i < options.pieces.size(); ++i) {
    AskReceive ask;
    ask.piece = {id, options.pieces[i], offset};
    ask.more = i + 1 < options.pieces.size();
    ask.wait_all = options.wait_all;
    ask.placeable = options.placeable;
    ask.shown = options.shown;
    ask.until_advert = options.until_advert;
    ask.path = options.path;
    ask.zcopy_min = options.zcopy_min;
    offset += options.pieces[i];
    Feed(ask);
  }
  return id;
}

OperationId Side::AskToAwaitUrgent() {
  const OperationId id = NewOperation(SimOperation::Kind::kUrgent, {});
  Feed(AskUrgent{id});
  return id;
}

OperationId Side::AskToShutdown() {
  const OperationId id = NewOperation(SimOperation::Kind::kShutdown, {});
  Feed(AskShutdown{id});
  return id;
}

OperationId Side::AskToClose(bool abort) {
  const OperationId id = NewOperation(SimOperation::Kind::kClose, {});
  Feed(AskClose{id, abort});
  return id;
}

OperationId Side::AskToSuspend(Time until) {
  const OperationId id = NewOperation(SimOperation::Kind::kSuspend, {});
  suspend_port_ = static_cast<uint16_t>(5000 + static_cast<uint32_t>(id));
  Feed(AskSuspend{id, suspend_port_, until});
  return id;
}

void Side::AskToCancel(OperationId operation, CancelMode mode) {
  operations_.at(operation).cancel_asked = true;
  Feed(AskCancel{operation, mode, Outcome::kCancelled});
}

// Of a send, what is part of the stream.
size_t Side::BytesInStream(const SimOperation& operation) {
  const bool taken_back = operation.result && (operation.result->outcome == Outcome::kCancelled ||
                                               operation.result->outcome == Outcome::kShutDown);
  return taken_back ? operation.result->bytes : operation.memory.size();
}

std::vector<uint64_t> Side::SentUrgent() const {
  std::vector<uint64_t> places;
  uint64_t end = 0;
  for (const OperationId id : send_order_) {
    const SimOperation& operation = operations_.at(id);
    const size_t bytes = BytesInStream(operation);
    end += bytes;
    if (operation.urgent && bytes == operation.memory.size()) places.push_back(end - 1);
  }
  return places;
}

// [10] One urgent byte at a time, each announced once, and none but on a Data with payload.
void Side::CheckUrgent(const sdp::Send& send) {
  const uint8_t flags = send.message.base.flags;
  const bool pending = (flags & wire::kFlagOobPending) != 0;
  const bool present = (flags & wire::kFlagOobPresent) != 0;
  EXPECT_FALSE(pending && urgent_announced_) << name_ << ": announced twice";
  EXPECT_FALSE(present && !pending && !urgent_announced_) << name_ << ": never announced";
  if (present) {
    EXPECT_TRUE(std::holds_alternative<wire::Data>(send.message.body)) << name_;
    EXPECT_GT(send.gather_count + send.copied_bytes, 0u) << name_;
  }
  urgent_announced_ = (urgent_announced_ || pending) && !present;
}

std::vector<std::byte> Side::SentStream() const {
  std::vector<std::byte> stream;
  for (const OperationId id : send_order_) {
    const SimOperation& operation = operations_.at(id);
    stream.insert(stream.end(), operation.memory.begin(),
                  operation.memory.begin() + static_cast<ptrdiff_t>(BytesInStream(operation)));
  }
  return stream;
}

// --- the core ---

void Side::Feed(const Input& input) {
  Actions actions;
  core_.Step(input, now_, actions);
  if (const auto* arrived = std::get_if<MessageArrived>(&input)) {
    const auto* advert = std::get_if<wire::SrcAvail>(&arrived->message.body);
    if (advert == nullptr) data_arrived_ += arrived->payload_length;
    if (advert != nullptr) adverts_arrived_ += advert->length;
  }
  for (const Action& action : actions) Run(action);
  CheckReadiness();
  if (prepare_asked_) {
    prepare_asked_ = false;
    Feed(ReceivesPrepared{prepares});
  }
  if (!to_answer_) return;
  const AdvertId advert = *to_answer_;
  to_answer_.reset();
  if (chance_.Chance(static_cast<uint64_t>(expose_failures_wanted_), 100)) {
    exposures_.erase(advert);
    Feed(ExposeFailed{advert});
    return;
  }
  Exposure& exposure = exposures_.at(advert);
  exposure.key = next_key_++;
  ++operations_.at(exposure.range.operation).exposures;
  operations_.at(exposure.range.operation).was_exposed = true;
  Feed(Exposed{advert, {exposure.key, 0x1000 + exposure.range.offset}});
}

void Side::Run(const Action& action) {
  EXPECT_FALSE(to_answer_ && std::holds_alternative<sdp::Send>(action))
      << name_ << ": a Send between Expose and its answer";
  history_.push_back(action);
  std::visit([this](const auto& it) { Act(it); }, action);
}

void Side::Act(const StartConnect& action) {
  EXPECT_EQ(action.port.has_value(), queue_pair_ > 0) << name_;
  hello_ = action.hello;
  resume_port_ = action.port;
  connecting_ = true;
}
void Side::Act(const AcceptConnection& action) {
  hello_ack_ = action.hello_ack;
  awaits_hello_ = connecting_ = false;
}
void Side::Act(const RejectConnection&) { rejected_ = true; }
void Side::Act(const ReplaceQueuePair&) {
  mode_watch_ = ModeWatch{};  // R12.7
  EXPECT_TRUE(lost_) << name_ << ": the old queue pair is still there";
  ++queue_pair_;
  lost_ = established_ = rejected_ = false;
  disconnect_.reset();
  last_sequence_ = 0;
  hello_.reset();
  hello_ack_.reset();
}
void Side::Act(const AwaitHello&) {
  EXPECT_TRUE(lost_) << name_ << ": the old queue pair is still there";
  awaits_hello_ = true;
}
void Side::Act(const ReportConnected&) {
  EXPECT_FALSE(connected_) << name_;
  connected_ = true;
}
void Side::Act(const Disconnect& action) {
  if (disconnect_) {
    EXPECT_TRUE(disconnect_->orderly && !action.orderly) << name_ << ": asked twice";
  }
  disconnect_ = action;
}
void Side::Act(const ReportClosed&) {
  EXPECT_FALSE(reported_closed_) << name_;
  EXPECT_EQ(pending_, 0u) << name_ << ": operations are pending behind ReportClosed";
  reported_closed_ = true;
}

void Side::Act(const PostReceive& action) {
  const size_t most = std::max(config_.receive_buffers, config_.receive_buffers_max);
  EXPECT_LT(static_cast<uint32_t>(action.buffer), most + kSpareReceiveBuffers);
  EXPECT_LT(posted_.size(), most + (most > config_.receive_buffers ? 1 : 0)) << name_;
  for (const ReceiveBuffer buffer : posted_) EXPECT_NE(buffer, action.buffer) << name_;
  EXPECT_FALSE(lost_) << name_ << ": a receive posted on a lost queue pair";
  posted_.push_back(action.buffer);
  receive_bytes_[action.buffer] = action.bytes;
}

void Side::Act(const PrepareReceives& action) {
  EXPECT_GE(action.bytes, wire::kReceiveBufferBytesMin);
  EXPECT_LE(action.bytes, std::max(config_.receive_buffer_bytes, config_.receive_buffer_bytes_max));
  EXPECT_GE(action.buffers, config_.receive_buffers);
  EXPECT_LE(action.buffers, std::max(config_.receive_buffers, config_.receive_buffers_max));
  prepare_asked_ = true;
}

void Side::Act(const RetireReceive& action) {
  EXPECT_GE(static_cast<uint32_t>(action.buffer), config_.receive_buffers + kSpareReceiveBuffers);
  for (const ReceiveBuffer buffer : posted_) EXPECT_NE(buffer, action.buffer) << name_;
}

void Side::Act(const sdp::Send& action) {
  EXPECT_FALSE(lost_ || disconnect_) << name_ << ": a Send behind Disconnect";
  EXPECT_EQ(action.message.base.sequence, ++last_sequence_) << name_ << ": MSeq not contiguous";
  CheckUrgent(action);
  EXPECT_TRUE(action.gather_count == 0 || action.copied_bytes == 0);
  EXPECT_LE(action.gather_count, config_.gather_max);
  for (uint32_t i = 0; i < action.gather_count; ++i) {
    EXPECT_GT(action.gather[i].length, 0u);
    ++operations_.at(action.gather[i].operation).gathers;
  }
  CheckAdverts(action);
  work_.push_back(action);
  EXPECT_LE(work_.size() + sent_.size() + reading_.size() + writing_.size(), config_.send_work_max)
      << name_;
}

// [5] Both kinds together.
void Side::CheckAdverts(const sdp::Send& send) {
  const wire::Body& body = send.message.body;
  uint32_t payload = send.copied_bytes;
  for (uint32_t i = 0; i < send.gather_count; ++i) payload += send.gather[i].length;
  if (const char* fault = mode_watch_.OnImmediateSent(send.message, payload); fault != nullptr) {
    ADD_FAILURE() << name_ << ": " << fault;
  }
  if (!std::holds_alternative<wire::SrcAvail>(body) &&
      !std::holds_alternative<wire::SinkAvail>(body)) {
    return;
  }
  size_t outstanding = 0;
  for (const auto& [advert, exposure] : exposures_) outstanding += exposure.withdrawn ? 0u : 1u;
  adverts_most_ = std::max(adverts_most_, outstanding);
  EXPECT_LE(outstanding, peer_max_adverts_) << name_ << ": more adverts than the peer can hold";
}

void Side::Act(const Read& action) {
  read_ += action.target.length;
  EXPECT_LE(action.target.length, config_.read_bytes_max);
  ++operations_.at(action.target.operation).reads;
  work_.push_back(action);
}

void Side::Act(const Write& action) {
  EXPECT_GT(action.source.length, 0u);
  EXPECT_LE(action.source.length, config_.read_bytes_max);
  ++operations_.at(action.source.operation).writes;
  work_.push_back(action);
}

std::byte* Side::At(const OperationRange& range) {
  SimOperation& operation = operations_.at(range.operation);
  EXPECT_FALSE(operation.result) << name_ << ": memory of a finished operation is touched";
  EXPECT_LE(range.offset + range.length, operation.memory.size()) << name_;
  return operation.memory.data() + range.offset;
}

void Side::Act(const CopyIn& action) {
  const std::vector<std::byte>& from = receive_memory_.at(action.buffer);
  ASSERT_LE(action.buffer_offset + action.target.length, from.size());
  for (const ReceiveBuffer buffer : posted_) EXPECT_NE(buffer, action.buffer) << name_;
  copied_in_ += action.target.length;
  CopyBytes(Bytes(At(action.target), action.target.length),
            ConstBytes(from).subspan(action.buffer_offset, action.target.length));
}

void Side::Act(const CopyOut& action) {
  copied_out_ = action.source.operation;
  EXPECT_LT(static_cast<uint32_t>(action.buffer), config_.send_buffers);
  EXPECT_FALSE(send_buffer_busy_[action.buffer]) << name_ << ": a posted send buffer is filled";
  std::vector<std::byte>& to = send_memory_[action.buffer];
  to.resize(16 * 1024);
  ASSERT_LE(action.buffer_offset + action.source.length, to.size());
  CopyBytes(Bytes(to).subspan(action.buffer_offset, action.source.length),
            ConstBytes(At(action.source), action.source.length));
}

void Side::Act(const Expose& action) {
  const bool receives = operations_.at(action.range.operation).kind == SimOperation::Kind::kReceive;
  EXPECT_EQ(action.right, receives ? Right::kRemoteWrite : Right::kRemoteRead);
  At(action.range);
  EXPECT_FALSE(exposures_.count(action.advert)) << name_ << ": an advert's id is used again";
  exposures_[action.advert] = {action.range, 0, true, action.right, false};
  to_answer_ = action.advert;
}

std::byte* Side::Reached(const RemoteRange& remote, uint32_t length, Right right) {
  for (auto& [advert, exposure] : exposures_) {
    if (!exposure.live || exposure.key != remote.key || exposure.right != right) continue;
    const uint64_t offset = remote.address - 0x1000;
    const uint64_t end = exposure.range.offset + exposure.range.length;
    EXPECT_TRUE(offset >= exposure.range.offset && offset + length <= end)
        << name_ << ": the peer reaches beyond what is exposed";
    return At({exposure.range.operation, length, offset});
  }
  ADD_FAILURE() << name_ << ": the peer reaches memory that is not exposed";
  return nullptr;
}

void Side::Act(const Withdraw& action) {
  Exposure& exposure = exposures_.at(action.advert);
  if (action.already_invalidated) {
    EXPECT_FALSE(exposure.live) << name_ << ": nobody has invalidated this key";
  }
  EXPECT_FALSE(exposure.withdrawn) << name_ << ": withdrawn twice";
  exposure.withdrawn = true;
  withdrawing_.push_back(action.advert);
}

void Side::CheckOrder(const FinishOperation& action, SimOperation::Kind kind) {
  std::deque<OperationId>& expected = expected_[kind];
  const auto place = std::find(expected.begin(), expected.end(), action.operation);
  ASSERT_NE(place, expected.end());
  EXPECT_TRUE(MayOvertake(action) || place == expected.begin())
      << name_ << ": operation " << static_cast<uint32_t>(action.operation) << " ends out of turn";
  expected.erase(place);
}

void Side::Act(const FinishOperation& action) {
  SimOperation& operation = operations_.at(action.operation);
  ASSERT_FALSE(operation.result) << name_ << ": an operation ends twice";
  if (!lost_ && operation.InUse() != nullptr) ADD_FAILURE() << name_ << ": " << operation.InUse();
  CheckOrder(action, operation.kind);
  operation.result = action;
  --pending_;
  EXPECT_LE(action.bytes, operation.memory.size());
  EXPECT_LE(action.bytes_zero_copy, action.bytes);
  if (operation.kind == SimOperation::Kind::kSend && action.outcome == Outcome::kDone) {
    EXPECT_EQ(action.bytes, operation.memory.size());
  }
  if (operation.kind != SimOperation::Kind::kReceive) {
    const bool dropped = action.outcome == Outcome::kCancelled && operation.was_exposed;
    dropped_after_advert_ += dropped ? 1u : 0u;
    return;
  }
  if (action.bytes > 0) {
    EXPECT_EQ(action.stream_offset, received_.size()) << name_;
  }
  received_.insert(received_.end(), operation.memory.begin(),
                   operation.memory.begin() + static_cast<ptrdiff_t>(action.bytes));
  if (action.urgent) received_urgent_.push_back(received_.size() - 1);
  saw_end_of_stream_ = saw_end_of_stream_ || action.end_of_stream;
}

void Side::Act(const ReportReadiness& action) {
  // Where more comes on top of what is readable it is told again.
  EXPECT_TRUE(readiness_ != action.readiness || action.readiness.readable)
      << name_ << ": no change";
  readiness_ = action.readiness;
}

// By the bytes that have arrived and those that were taken.
void Side::CheckReadiness() const {
  ASSERT_TRUE(readiness_) << name_;
  EXPECT_TRUE(readiness_->ended || !reported_closed_) << name_;
  if (readiness_->readable) {
    EXPECT_GT(data_arrived_ + adverts_arrived_, copied_in_ + read_) << name_;
  } else if (IsOpen(core_.phase()) && expected_.count(SimOperation::Kind::kClose) == 0) {
    EXPECT_LE(data_arrived_, copied_in_) << name_ << ": bytes wait that nobody is told of";
  }
}

void Side::Act(const SetTimer& action) { timers_[action.timer] = action.at; }
void Side::Act(const ClearTimer& action) { timers_.erase(action.timer); }

Side::WireMessage Side::Assemble(const sdp::Send& send) {
  WireMessage message{queue_pair_, send.message, {}, send.invalidate_key, {}};
  for (uint32_t i = 0; i < send.gather_count; ++i) {
    const std::byte* from = At(send.gather[i]);
    message.payload.insert(message.payload.end(), from, from + send.gather[i].length);
  }
  if (send.copied_bytes > 0) {
    const std::vector<std::byte>& from = send_memory_.at(*send.send_buffer);
    message.payload.assign(from.begin(), from.begin() + send.copied_bytes);
  }
  return message;
}

}  // namespace esdp::sdp::testing
