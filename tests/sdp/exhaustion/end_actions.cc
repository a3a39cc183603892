#include <algorithm>

#include "impl/sdp/wire/text.h"
#include "tests/sdp/exhaustion/end.h"

// What an end does for each action of its core, and what may not be about it.

namespace esdp::sdp::exhaustion {

void End::Act(const StartConnect& action) {
  hello = action.hello;
  connecting = true;
}

void End::Act(const ReplaceQueuePair&) {
  if (!lost) Wrong("the old queue pair is still there");
  ++queue_pair;
  lost = false;
  disconnect.reset();
  hello.reset();
  hello_ack.reset();
}

void End::Act(const Disconnect& action) {
  if (disconnect && (!disconnect->orderly || action.orderly)) Wrong("Disconnect twice");
  if (action.cause == Outcome::kPeerProtocol || action.cause == Outcome::kInternal) {
    Wrong(std::string("the connection fails: ") + action.reason);
  }
  if (!action.orderly) watch.Saw(Mark::kAborted);
  disconnect = action;
}

void End::Act(const ReportClosed& action) {
  if (reported_closed) Wrong("ReportClosed twice");
  reported_closed = true;
  broken = action.cause != Outcome::kDone;
  if (action.cause == Outcome::kDone) watch.Saw(Mark::kClosedClean);
  for (const Operation& operation : operations) {
    if (!operation.result) Wrong("an operation is pending behind ReportClosed");
  }
}

void End::Act(const PostReceive& action) {
  const auto buffer = static_cast<uint16_t>(action.buffer);
  if (std::find(posted.begin(), posted.end(), buffer) != posted.end()) {
    Wrong("a receive buffer is posted twice");
  }
  if (lost) Wrong("a receive is posted on a lost queue pair");
  if (receive_memory.size() <= buffer) receive_memory.resize(buffer + 1u);
  if (receive_bytes.size() <= buffer) receive_bytes.resize(buffer + 1u);
  receive_bytes[buffer] = action.bytes;
  receive_memory[buffer].clear();
  posted.push_back(buffer);
}

void End::Act(const sdp::Send& action) {
  if (lost || disconnect) Wrong("a Send behind Disconnect");
  if (to_answer) Wrong("a Send between Expose and its answer");
  Parcel parcel;
  parcel.queue_pair = queue_pair;
  parcel.message = action.message;
  parcel.invalidate = action.invalidate_key;
  for (uint32_t i = 0; i < action.gather_count; ++i) {
    const char* from = At(action.gather[i]);
    if (from == nullptr) return;
    parcel.payload.append(from, action.gather[i].length);
    ++Find(action.gather[i].operation)->gathers;
  }
  if (action.copied_bytes > 0) {
    parcel.payload = send_memory[static_cast<uint16_t>(*action.send_buffer)];
    if (parcel.payload.size() != action.copied_bytes) Wrong("a send buffer is not sent whole");
  }
  const auto payload = static_cast<uint32_t>(parcel.payload.size());
  const char* fault = watch.OnSend(action.message, payload, posted.size(), reading.size());
  if (fault != nullptr) Wrong(fault);
  if (adverts_out() > peer_max_adverts) Wrong("more adverts than the peer's MaxAdverts");
  if (acknowledges_early) parcel.message.base.acknowledged = watch.last_received();
  outgoing.push_back(std::move(parcel));
  unfinished.push_back(action);
}

void End::Act(const Read& action) {
  if (At(action.target) == nullptr) return;
  ++Find(action.target.operation)->reads;
  reading.push_back(action);
}

void End::Act(const Write& action) {
  const char* from = At(action.source);
  if (from == nullptr) return;
  ++Find(action.source.operation)->writes;
  Parcel parcel;
  parcel.queue_pair = queue_pair;
  parcel.write = action;
  parcel.payload.assign(from, action.source.length);
  outgoing.push_back(std::move(parcel));
  writing.push_back(action);
}

void End::Act(const CopyIn& action) {
  const Payload& from = receive_memory[static_cast<uint16_t>(action.buffer)];
  char* to = At(action.target);
  if (to == nullptr) return;
  if (action.buffer_offset + action.target.length > from.size()) {
    return Wrong("CopyIn of what is not in the receive buffer");
  }
  from.copy(to, action.target.length, action.buffer_offset);
}

void End::Act(const CopyOut& action) {
  const auto buffer = static_cast<uint16_t>(action.buffer);
  if (send_memory.size() <= buffer) send_memory.resize(buffer + 1u);
  const char* from = At(action.source);
  if (from == nullptr) return;
  if (send_memory[buffer].size() != action.buffer_offset) Wrong("CopyOut leaves a gap");
  send_memory[buffer].append(from, action.source.length);
}

void End::Act(const Expose& action) {
  if (At(action.range) == nullptr) return;
  exposures.push_back({action.advert, action.range, action.right, next_key++, false, false});
  to_answer = action.advert;
}

void End::Act(const Withdraw& action) {
  for (Exposure& exposure : exposures) {
    if (exposure.advert != action.advert) continue;
    if (action.already_invalidated && exposure.live) Wrong("nobody has invalidated this key");
    exposure.withdrawing = true;
    return;
  }
  Wrong("Withdraw of what is not exposed");
}

void End::CheckTurn(const Operation& operation, const FinishOperation& action) {
  if (testing::MayOvertake(action)) return;
  for (const Operation& other : operations) {
    if (&other == &operation) return;
    if (other.kind == operation.kind && !other.result) Wrong("an operation ends out of turn");
  }
}

void End::Act(const FinishOperation& action) {
  Operation* operation = Find(action.operation);
  if (operation == nullptr) return;
  if (operation->result) return Wrong("an operation ends twice");
  if (!lost && operation->InUse() != nullptr) Wrong(operation->InUse());
  CheckTurn(*operation, action);
  operation->result = action;
  if (action.bytes > operation->memory.size()) Wrong("more bytes than the operation has");
  const bool is_send = operation->kind == Ask::Kind::kSend;
  if (is_send && action.outcome == Outcome::kCancelled) watch.Saw(Mark::kCancelledUnsent);
  if (is_send && action.outcome == Outcome::kCancelled && action.bytes > 0) {
    Wrong("a cancelled send has moved bytes");
  }
  if (is_send && action.outcome == Outcome::kDone && action.bytes != operation->memory.size()) {
    Wrong("a send is done and short");
  }
  if (operation->kind == Ask::Kind::kReceive) TakeReceived(*operation, action);
  if (operation->kind != Ask::Kind::kAwaitUrgent || action.outcome != Outcome::kDone) return;
  if (action.end_of_stream) return;
  ++urgent_told;
  watch.Saw(Mark::kUrgentTold);
  if (watch.urgent_announced()) watch.Saw(Mark::kUrgentAhead);
  if (urgent_told > std::count_if(peer_urgent.begin(), peer_urgent.end(),
                                  [](uint8_t length) { return length > 0; })) {
    Wrong("more urgent bytes are told of than there are");
  }
}

// A receive ends with the urgent byte, and says so.
void End::CheckUrgent(const Operation& operation, const FinishOperation& action, size_t at) {
  const auto token = static_cast<unsigned char>(operation.memory[at]);
  const size_t length = peer_urgent[token / 64u];
  const bool urgent = length > 0 && token % 64u == length - 1;
  const bool last = at + 1 == action.bytes;
  if (urgent && !(last && action.urgent)) Wrong("an urgent byte is received as any other");
  if (!urgent && last && action.urgent) Wrong("a byte is received as urgent that is not");
}

void End::TakeReceived(const Operation& operation, const FinishOperation& action) {
  if (action.bytes > 0 && action.stream_offset != received.size()) Wrong("wrong stream offset");
  for (size_t i = 0; i < action.bytes && i < operation.memory.size(); ++i) {
    const auto token = static_cast<unsigned char>(operation.memory[i]);
    const bool begins = token % 64u == 0;
    const bool follows =
        !received.empty() && token == static_cast<unsigned char>(received.back()) + 1u;
    if (!begins && !follows) Wrong("bytes are lost, twice there, or out of order");
    CheckUrgent(operation, action, i);
    received.push_back(operation.memory[i]);
  }
}

void End::Act(const SetTimer& action) {
  Act(ClearTimer{action.timer});
  timers.emplace_back(action.timer, action.at);
}

void End::Act(const ClearTimer& action) {
  std::erase_if(timers, [&](const auto& timer) { return timer.first == action.timer; });
}

// --- as a number, as text ---

namespace {

void AddRange(Digest& digest, const OperationRange& range) {
  digest.Add(static_cast<uint32_t>(range.operation)).Add(range.length).Add(range.offset);
}

void AddPayload(Digest& digest, const Payload& payload) {
  digest.Add(payload.size());
  for (const char byte : payload) digest.Add(static_cast<unsigned char>(byte));
}

}  // namespace

void End::AddTo(Digest& digest) const {
  digest.Add(core.digest());
  watch.AddTo(digest);
  for (const size_t next : next_ask) digest.Add(next);
  for (const Operation& it : operations) {
    digest.Add(it.number).Add(it.gathers).Add(it.reads).Add(it.writes).Add(it.exposures);
    digest.Add(it.result ? 1u + static_cast<uint8_t>(it.result->outcome) : 0u);
    digest.Add(it.result ? it.result->bytes : 0u);
    AddPayload(digest, it.memory);
  }
  AddPayload(digest, received);
  digest.Add(queue_pair).Add(awaits_hello).Add(connecting).Add(urgent_told);
  digest.Add(to_prepare.value_or(0));
  for (const uint16_t buffer : posted) digest.Add(receive_bytes[buffer]);
  digest.Add(lost).Add(broken).Add(disconnect ? 1u + disconnect->orderly : 0u).Add(next_key);
  digest.Add(posted.size()).Add(outgoing.size()).Add(unfinished.size());
  for (const uint16_t buffer : posted) digest.Add(buffer);
  for (const Payload& memory : receive_memory) AddPayload(digest, memory);
  for (const Payload& memory : send_memory) AddPayload(digest, memory);
  for (const Parcel& parcel : outgoing) {
    digest.Add(parcel.queue_pair).Add(parcel.message.base.flags);
    digest.Add(parcel.message.body.index()).Add(parcel.message.base.sequence);
    digest.Add(parcel.message.base.buffers).Add(parcel.message.base.acknowledged);
    digest.Add(parcel.invalidate.value_or(0)).Add(parcel.write ? parcel.write->target.key : 0u);
    AddPayload(digest, parcel.payload);
  }
  for (const sdp::Send& send : unfinished) digest.Add(send.message.base.sequence);
  digest.Add(reading.size()).Add(writing.size()).Add(exposures.size()).Add(timers.size());
  for (const Read& read : reading) AddRange(digest, read.target);
  for (const Write& write : writing) AddRange(digest, write.source);
  for (const Exposure& it : exposures) {
    digest.Add(it.key).Add(it.live).Add(it.withdrawing);
    AddRange(digest, it.range);
  }
  digest.Add(to_answer.has_value());
  for (const auto& [timer, at] : timers) {
    digest.Add(static_cast<uint8_t>(timer));
    digest.Add(static_cast<uint64_t>(at.time_since_epoch().count()));
  }
}

}  // namespace esdp::sdp::exhaustion
