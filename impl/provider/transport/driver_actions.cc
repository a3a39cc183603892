#include "impl/base/bytes.h"
#include "impl/provider/regions.h"
#include "impl/provider/transport/driver.h"
#include "impl/sdp/wire/codec.h"

// What each action of the core is on the port.

namespace esdp::provider {
namespace {

fabric::RemoteRange ToFabric(const sdp::RemoteRange& range) { return {range.key, range.address}; }
sdp::RemoteRange ToCore(const fabric::RemoteRange& range) { return {range.key, range.address}; }

}  // namespace

// --- beginning and end ------------------------------------------------------------------------------

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
  set_up_.RejectRequest(endpoint);
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
