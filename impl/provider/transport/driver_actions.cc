#include <array>

#include "impl/base/bytes.h"
#include "impl/provider/regions.h"
#include "impl/provider/transport/driver.h"
#include "impl/sdp/wire/codec.h"

// What each action of the core is on the port.

namespace esdp::provider {
namespace {

fabric::RemoteRange ToFabric(const sdp::RemoteRange& range) { return {range.key, range.address}; }
sdp::RemoteRange ToCore(const fabric::RemoteRange& range) { return {range.key, range.address}; }

// [R25.1] Whole where it fits. A Hello's compact form is its beginning [R2.6.2].
ConstBytes EncodeHello(const sdp::wire::Message& hello, const fabric::Fabric& fabric,
                       std::array<std::byte, sdp::wire::kHelloBytes>& bytes) {
  size_t length = sdp::wire::Encode(hello, 0, bytes);
  if (fabric.limits().private_data_max >= length) return ConstBytes(bytes).first(length);
  const auto& body = *std::get_if<sdp::wire::Hello>(&hello.body);
  if (body.return_token == sdp::wire::ReturnToken{}) {
    return ConstBytes(bytes).first(sdp::wire::kCompactHelloBytes);
  }
  constexpr size_t kTail = sdp::wire::kCompactHelloTokenBytes - sdp::wire::kCompactHelloBytes;
  CopyBytes(Bytes(bytes).subspan(sdp::wire::kCompactHelloBytes, kTail),
            ConstBytes(bytes).subspan(sdp::wire::kHelloAddressesEnd, kTail));
  return ConstBytes(bytes).first(sdp::wire::kCompactHelloTokenBytes);
}

}  // namespace

// --- set-up and end ------------------------------------------------------------------------------

void Driver::Act(Endpoint& endpoint, const sdp::StartConnect& action) {
  Flush();
  endpoint.connecting = true;
  Address local = endpoint.local;
  Address peer = endpoint.peer;
  sdp::wire::Message hello = action.hello;
  absl::Status status;
  if (action.port) {
    if (endpoint.phase != QueuePairPhase::kFailed && !connections_.BeginMove(endpoint)) {
      Move(endpoint.phase, QueuePairCue::kFailed);
      endpoint.evidence.NoteRefusal(
          absl::ResourceExhaustedError("too many connections are being moved by their peers"));
    }
    // The old port may still be in use, perhaps by a listener: the Hello alone has it.
    local.port = 0;
    peer.port = *action.port;
  } else if (endpoint.phase != QueuePairPhase::kFailed) {
    status = NameLocalPort(endpoint, local, hello);
  }
  std::array<std::byte, sdp::wire::kHelloBytes> bytes{};
  const ConstBytes encoded = EncodeHello(hello, *endpoint.fabric, bytes);
  if (endpoint.phase != QueuePairPhase::kFailed) {
    if (status.ok()) {
      status = endpoint.fabric->Connect(endpoint.queue_pair, local, peer, encoded,
                                        endpoint.connect_deadline);
    }
    if (status.ok()) return;
    endpoint.evidence.NoteRefusal(status);
  }
  Move(endpoint.phase, QueuePairCue::kFailed);
  if (endpoint.attempt && endpoint.attempt->has_next) return;  // another fabric is tried
  answers_.PushBack(sdp::ConnectFailed{});
}

// The peer compares the Hello's port with the transport's, so it has to be known now. [R2.6.7]
// Where the transport tells it nothing it takes port and addresses from there.
absl::Status Driver::NameLocalPort(const Endpoint& endpoint, Address& local,
                                   sdp::wire::Message& hello) {
  local.family = endpoint.peer.family;
  const absl::StatusOr<Address> reserved =
      endpoint.fabric->ReserveAddress(endpoint.queue_pair, local, endpoint.peer);
  if (absl::IsUnimplemented(reserved.status())) return absl::OkStatus();
  if (!reserved.ok()) return reserved.status();
  local = *reserved;
  sdp::wire::Hello& named = std::get<sdp::wire::Hello>(hello.body);
  named.local_port = local.port;
  named.source_address = local.bytes;
  return absl::OkStatus();
}

void Driver::Act(Endpoint& endpoint, const sdp::AcceptConnection& action) {
  Flush();
  std::array<std::byte, sdp::wire::kHelloAckBytes> hello_ack{};
  const size_t bytes = sdp::wire::Encode(action.hello_ack, 0, hello_ack);
  if (endpoint.phase != QueuePairPhase::kFailed) {
    // Without memory it throws, and the request is rejected with the connection's end.
    const absl::Status status = endpoint.fabric->Accept(endpoint.request, endpoint.queue_pair,
                                                        ConstBytes(hello_ack).first(bytes));
    if (status.ok()) {
      endpoint.request = fabric::RequestId::kNone;
      return;
    }
    endpoint.evidence.NoteRefusal(status);
  }
  Move(endpoint.phase, QueuePairCue::kFailed);
  (void)endpoint.fabric->Reject(std::exchange(endpoint.request, fabric::RequestId::kNone), {});
  answers_.PushBack(sdp::ConnectFailed{});
}

void Driver::Act(Endpoint& endpoint, const sdp::RejectConnection& action) {
  if (endpoint.phase == QueuePairPhase::kAwaited) {
    WriteLog("the return of " + fabric::ToString(endpoint.peer) + " is rejected: " + action.reason);
  } else if (*endpoint.reason == '\0') {
    endpoint.reason = action.reason;
  }
  (void)endpoint.fabric->Reject(std::exchange(endpoint.request, fabric::RequestId::kNone), {});
}

void Driver::Act(Endpoint& endpoint, const sdp::ReplaceQueuePair&) {
  Flush();  // whatever is collected is the old one's
  (void)endpoint.fabric->DestroyQueuePair(endpoint.queue_pair);
  endpoint.evidence = {};
  endpoint.moved = true;
  Move(endpoint.phase, QueuePairCue::kReplaced);
  endpoint.connect_deadline = kTimeInfinite;  // the core has a bound of its own
  const auto queue_pair = endpoint.fabric->CreateQueuePair(endpoint.options);
  if (!queue_pair.ok()) {
    Move(endpoint.phase, QueuePairCue::kFailed);
    endpoint.evidence.NoteRefusal(queue_pair.status());
  }
  connections_.Rename(endpoint, queue_pair.value_or(fabric::QueuePairId::kNone));
  endpoint.exposures.Move(endpoint.queue_pair);
}

void Driver::Act(Endpoint& endpoint, const sdp::AwaitHello&) {
  Move(endpoint.phase, QueuePairCue::kPeerAwaited);
  endpoint.connecting = false;
  endpoint.evidence = {};
  if (!endpoint.early_return) return;
  endpoint.request = endpoint.early_return->request;
  answers_.PushBack(sdp::HelloArrived{endpoint.early_return->hello});
  endpoint.early_return.reset();
}

// Whatever becomes of it, its queue pair is destroyed with the first word of it.
void Driver::Act(Endpoint& endpoint, const sdp::Farewell& action) {
  fabric::Fabric& fabric = *endpoint.fabric;
  const auto queue_pair = fabric.CreateQueuePair(endpoint.options);
  if (!queue_pair.ok()) return;
  Address local = endpoint.local;
  local.port = 0;
  Address peer = endpoint.peer;
  peer.port = action.port;
  std::array<std::byte, sdp::wire::kHelloBytes> bytes{};
  const ConstBytes hello = EncodeHello(action.hello, fabric, bytes);
  if (fabric.Connect(*queue_pair, local, peer, hello, AddSaturating(now_, kFarewellWait)).ok()) {
    connections_.AddFarewell(endpoint.place, *queue_pair);
  } else {
    (void)fabric.DestroyQueuePair(*queue_pair);
  }
}

void Driver::Act(Endpoint& endpoint, const sdp::ReportConnected&) {
  if (endpoint.visibility == Visibility::kOrphaned) {
    const auto close = operations_.Insert({Operation::Kind::kClose, endpoint.id});
    if (close) answers_.PushBack(sdp::AskClose{*close, true});
    return;
  }
  Move(endpoint.visibility, VisibilityCue::kAnnounced);
  if (endpoint.connecting) {
    observer_.OnConnected(endpoint.id, endpoint.local, endpoint.peer, endpoint.place);
  } else {
    observer_.OnIncoming(endpoint.listener, endpoint.id, endpoint.local, endpoint.peer,
                         endpoint.place);
  }
}

void Driver::Act(Endpoint& endpoint, const sdp::Disconnect& action) {
  if (endpoint.cause == sdp::Outcome::kDone) endpoint.cause = action.cause;
  if (*endpoint.reason == '\0') endpoint.reason = action.reason;
  Flush();
  Move(endpoint.phase, QueuePairCue::kEndAsked);
  if (!TakesWork(endpoint.phase)) {  // without a queue pair nothing would be heard of it
    answers_.PushBack(sdp::ConnectionLost{.clean = true});
    return;
  }
  if (endpoint.fabric->Disconnect(endpoint.queue_pair, action.orderly).ok()) return;
  if (endpoint.phase == QueuePairPhase::kEnding)
    return;  // the end has begun already, and its kDisconnected is on the way
  // It was never connected, so that nothing will be heard of it.
  if (endpoint.request != fabric::RequestId::kNone)
    (void)endpoint.fabric->Reject(endpoint.request, {});
  endpoint.request = fabric::RequestId::kNone;
  (void)endpoint.fabric->DestroyQueuePair(endpoint.queue_pair);
  Move(endpoint.phase, QueuePairCue::kLost);
  answers_.PushBack(sdp::ConnectionLost{.clean = true});
}

void Driver::Act(Endpoint& endpoint, const sdp::ReportClosed& action) {
  endpoint.cause = action.cause;
  if (*endpoint.reason == '\0') endpoint.reason = action.reason;
}

// --- the wire ------------------------------------------------------------------------------------

void Driver::Act(Endpoint& endpoint, const sdp::PostReceive& action) {
  const uint32_t buffer = static_cast<uint32_t>(action.buffer);
  if (!endpoint.pool.HasReceiveBuffer(buffer)) return Fault(endpoint, "no such receive buffer");
  if (!TakesWork(endpoint.phase)) return;
  if (batch_.receives_full()) Flush();
  Stage(endpoint);
  batch_.AddReceive(buffer, endpoint.pool.PostEntry(buffer, action.bytes));
}

void Driver::Act(Endpoint& endpoint, const sdp::PrepareReceives& action) {
  const absl::Status changed = ChangeReceives(endpoint, action);
  if (!changed.ok())
    WriteLog("receive buffers stay as they are: " + std::string(changed.message()));
  answers_.PushBack(sdp::ReceivesPrepared{changed.ok()});
}

absl::Status Driver::ChangeReceives(Endpoint& endpoint, const sdp::PrepareReceives& action) {
  const uint32_t buffers = uint32_t{action.buffers} + sdp::kSpareReceiveBuffers;
  const uint64_t before = endpoint.pool.newest_bytes();
  const uint64_t bytes = endpoint.pool.BytesFor(buffers, action.bytes);
  if (bytes > before && receive_growth_ - before + bytes > receive_growth_max_) {
    return absl::ResourceExhaustedError("receive_growth_max is reached");
  }
  absl::Status changed = endpoint.pool.Change(*endpoint.fabric, buffers, action.bytes);
  if (!changed.ok()) return changed;
  CountGrowth(endpoint);
  // They shrink because nothing arrives, so what is posted is not needed soon.
  if (bytes < before) endpoint.fabric->ReleaseUnusedReceives(endpoint.queue_pair);
  return absl::OkStatus();
}

void Driver::Act(Endpoint& endpoint, const sdp::RetireReceive& action) {
  const uint32_t buffer = static_cast<uint32_t>(action.buffer);
  if (!endpoint.pool.HasReceiveBuffer(buffer)) return Fault(endpoint, "no such receive buffer");
  endpoint.pool.Retire(buffer);
  CountGrowth(endpoint);
}

// Mappings that were left count as long as they are used where their pages are pinned.
void Driver::CountGrowth(Endpoint& endpoint) {
  const bool pinned = endpoint.fabric->limits().pins_memory;
  const uint64_t growth = HasEnded(endpoint.visibility) ? 0
                          : pinned                      ? endpoint.pool.changed_bytes()
                                                        : endpoint.pool.newest_bytes();
  receive_growth_ = receive_growth_ - endpoint.receive_growth + growth;
  endpoint.receive_growth = growth;
}

void Driver::Act(Endpoint& endpoint, const sdp::Send& action) {
  if (!TakesWork(endpoint.phase)) return;
  const auto [work, entries] = StageSend(endpoint);
  size_t count = 1;
  size_t payload = 0;
  const size_t header = sdp::wire::HeaderBytes(sdp::wire::IdOf(action.message));
  Bytes message;
  if (action.send_buffer && action.copied_bytes > 0) {
    const uint32_t buffer = static_cast<uint32_t>(*action.send_buffer);
    if (!endpoint.pool.HasSendBuffer(buffer) ||
        action.copied_bytes > BufferPool::kSendBufferBytes) {
      return Fault(endpoint, "a Send beyond its send buffer");
    }
    message = endpoint.pool.WithHeader(buffer, header, action.copied_bytes);
    payload = action.copied_bytes;
  } else {
    message = endpoint.pool.HeaderSlot(endpoint.next_header++).first(header);
  }
  entries[0] = endpoint.pool.Entry(message);
  for (uint32_t i = 0; i < action.gather_count && i < sdp::kGatherMax; ++i) {
    if (action.gather[i].length == 0) continue;
    const auto range = Find(endpoint, action.gather[i]);
    if (!range || count == entries.size()) return Fault(endpoint, "a Send of no memory");
    entries[count++] = range->entry;
    payload += range->entry.length;
  }
  sdp::wire::Encode(action.message, payload, message);
  work.opcode = fabric::Opcode::kSend;
  work.has_invalidate = action.invalidate_key.has_value();
  work.invalidate_key = action.invalidate_key.value_or(0);
  work.solicited = sdp::wire::IsSolicited(action.message);
  batch_.AddSend(count);
}

void Driver::Act(Endpoint& endpoint, const sdp::Read& action) {
  PostTransfer(endpoint, fabric::Opcode::kRead, action.target, action.source);
}

void Driver::Act(Endpoint& endpoint, const sdp::Write& action) {
  PostTransfer(endpoint, fabric::Opcode::kWrite, action.source, action.target);
}

void Driver::PostTransfer(Endpoint& endpoint, fabric::Opcode opcode,
                          const sdp::OperationRange& local, const sdp::RemoteRange& remote) {
  if (!TakesWork(endpoint.phase)) return;
  const auto range = Find(endpoint, local);
  if (!range) return Fault(endpoint, "an RDMA transfer of no memory");
  const auto [work, entries] = StageSend(endpoint);
  work.opcode = opcode;
  work.remote = ToFabric(remote);
  entries[0] = range->entry;
  batch_.AddSend(1);
}

// --- memory --------------------------------------------------------------------------------------

std::optional<ResolvedRange> Driver::Find(Endpoint& endpoint, const sdp::OperationRange& range) {
  Operation* operation = operations_.Find(range.operation);
  if (operation == nullptr || operation->connection != endpoint.id) return std::nullopt;
  return Resolve(*operation, range, endpoint.place);
}

void Driver::Act(Endpoint& endpoint, const sdp::CopyIn& action) {
  if (action.target.length == 0) return;
  const uint32_t buffer = static_cast<uint32_t>(action.buffer);
  const auto range = Find(endpoint, action.target);
  if (!range || !endpoint.pool.HasReceiveBuffer(buffer))
    return Fault(endpoint, "a copy to nowhere");
  const ConstBytes source = endpoint.pool.ReceiveBuffer(buffer);
  if (action.buffer_offset > source.size() ||
      range->entry.length > source.size() - action.buffer_offset) {
    return Fault(endpoint, "a copy from beyond a receive buffer");
  }
  CopyBytes(Bytes(range->entry.address, range->entry.length),
            source.subspan(action.buffer_offset, range->entry.length));
}

void Driver::Act(Endpoint& endpoint, const sdp::CopyOut& action) {
  if (action.source.length == 0) return;
  const auto range = Find(endpoint, action.source);
  if (!range) return Fault(endpoint, "a copy from nowhere");
  CopyToBuffer(endpoint, action, ConstBytes(range->entry.address, range->entry.length));
}

void Driver::CopyToBuffer(Endpoint& endpoint, const sdp::CopyOut& action, ConstBytes source) {
  const uint32_t buffer = static_cast<uint32_t>(action.buffer);
  if (!endpoint.pool.HasSendBuffer(buffer)) return Fault(endpoint, "a copy to nowhere");
  const Bytes target = endpoint.pool.SendBuffer(buffer);
  if (action.buffer_offset > target.size() ||
      source.size() > target.size() - action.buffer_offset) {
    return Fault(endpoint, "a copy to beyond a send buffer");
  }
  CopyBytes(target.subspan(action.buffer_offset, source.size()), source);
}

void Driver::Act(Endpoint& endpoint, const sdp::Expose& action) {
  std::optional<fabric::RemoteRange> shown;
  if (const auto range = Find(endpoint, action.range); range && TakesWork(endpoint.phase)) {
    shown = endpoint.exposures.Expose(*endpoint.fabric, action.advert, *range, action.right);
  }
  if (shown) {
    expose_answers_.PushBack(sdp::Exposed{action.advert, ToCore(*shown)});
  } else {
    expose_answers_.PushBack(sdp::ExposeFailed{action.advert});
  }
}

void Driver::Act(Endpoint& endpoint, const sdp::Withdraw& action) {
  const std::optional<uint32_t> key = endpoint.exposures.Withdraw(*endpoint.fabric, action.advert);
  if (key) {
    PostInvalidate(endpoint, action.advert, *key);
  } else {
    answers_.PushBack(sdp::Withdrawn{action.advert});
  }
}

// Alone in its batch: the peer may have invalidated the key a moment ago, and then the post is
// refused.
void Driver::PostInvalidate(Endpoint& endpoint, sdp::AdvertId advert, uint32_t key) {
  Flush();
  fabric::SendWork work;
  work.work_id = static_cast<uint32_t>(advert);
  work.opcode = fabric::Opcode::kInvalidate;
  work.invalidate_key = key;
  const absl::Status status =
      endpoint.fabric->PostSend(endpoint.queue_pair, absl::MakeConstSpan(&work, 1));
  if (status.code() == absl::StatusCode::kNotFound) {
    endpoint.exposures.Withdrawn(advert);
    answers_.PushBack(sdp::Withdrawn{advert});
  } else if (!status.ok()) {
    Break(endpoint, status);  // its loss takes all keys back
  }
}

// --- time ----------------------------------------------------------------------------------------

void Driver::Act(Endpoint& endpoint, const sdp::SetTimer& action) {
  timers_.Set(endpoint.id, action.timer, action.at);
}

void Driver::Act(Endpoint& endpoint, const sdp::ClearTimer& action) {
  timers_.Clear(endpoint.id, action.timer);
}

}  // namespace esdp::provider
