#include "impl/base/bytes.h"
#include "impl/provider/regions.h"
#include "impl/provider/session/driver.h"
#include "impl/sdp/wire/codec.h"

// What each action of the core is on the port.

namespace esdp::provider {
namespace {

fabric::RemoteRange ToFabric(const sdp::RemoteRange& range) { return {range.key, range.address}; }
sdp::RemoteRange ToCore(const fabric::RemoteRange& range) { return {range.key, range.address}; }

static_assert(WorkBatch::kEntriesPerSend == 1 + sdp::kGatherMax);

}  // namespace

// --- beginning and end ---------------------------------------------------------------------------

void Driver::Act(Session& session, const sdp::ReportConnected&) {
  if (session.visibility == Visibility::kOrphaned) {
    const auto close = operations_.Insert({Operation::Kind::kClose, session.id});
    if (close) answers_.PushBack(sdp::AskClose{*close, true});
    return;
  }
  Move(session.visibility, VisibilityCue::kAnnounced);
  if (session.connecting) {
    observer_.OnConnected(session.id, session.local, session.peer, session.transport.place());
  } else {
    observer_.OnIncoming(session.listener, session.id, session.local, session.peer,
                         session.transport.place());
  }
}

void Driver::Act(Session& session, const sdp::Disconnect& action) {
  if (session.cause == sdp::Outcome::kDone) session.cause = action.cause;
  if (*session.reason == '\0') session.reason = action.reason;
  Flush();
  if (session.transport.End(action.orderly)) return;
  set_up_.RejectRequest(session);
  session.transport.Drop();
  answers_.PushBack(sdp::ConnectionLost{.clean = true});
}

void Driver::Act(Session& session, const sdp::ReportClosed& action) {
  session.cause = action.cause;
  if (*session.reason == '\0') session.reason = action.reason;
}

// --- the wire ------------------------------------------------------------------------------------

void Driver::Act(Session& session, const sdp::PostReceive& action) {
  const uint32_t buffer = static_cast<uint32_t>(action.buffer);
  if (!session.transport.pool().HasReceiveBuffer(buffer))
    return Fault(session, "no such receive buffer");
  if (!session.transport.TakesWork()) return;
  posting_.AddReceive(session.transport, buffer, action.bytes);
}

void Driver::Act(Session& session, const sdp::PrepareReceives& action) {
  const absl::Status changed = growth_.Change(
      session.transport, uint32_t{action.buffers} + sdp::kSpareReceiveBuffers, action.bytes);
  if (!changed.ok())
    WriteLog("receive buffers stay as they are: " + std::string(changed.message()));
  answers_.PushBack(sdp::ReceivesPrepared{changed.ok()});
}

void Driver::Act(Session& session, const sdp::ReportReadiness& action) {
  if (IsKnown(session.visibility)) observer_.OnReadiness(session.id, action.readiness);
}

void Driver::Act(Session& session, const sdp::RetireReceive& action) {
  const uint32_t buffer = static_cast<uint32_t>(action.buffer);
  if (!session.transport.pool().HasReceiveBuffer(buffer))
    return Fault(session, "no such receive buffer");
  session.transport.pool().Retire(buffer);
  growth_.Count(session.transport);
}

void Driver::Act(Session& session, const sdp::Send& action) {
  if (!session.transport.TakesWork()) return;
  const auto [work, entries] = posting_.StageSend(session.transport);
  size_t count = 1;
  size_t payload = 0;
  const size_t header = sdp::wire::HeaderBytes(sdp::wire::IdOf(action.message));
  Bytes message;
  if (action.send_buffer && action.copied_bytes > 0) {
    const uint32_t buffer = static_cast<uint32_t>(*action.send_buffer);
    if (!session.transport.pool().HasSendBuffer(buffer) ||
        action.copied_bytes > BufferPool::kSendBufferBytes) {
      return Fault(session, "a Send beyond its send buffer");
    }
    message = session.transport.pool().WithHeader(buffer, header, action.copied_bytes);
    payload = action.copied_bytes;
  } else {
    message = session.transport.NextHeader(header);
  }
  entries[0] = session.transport.pool().Entry(message);
  for (uint32_t i = 0; i < action.gather_count && i < sdp::kGatherMax; ++i) {
    if (action.gather[i].length == 0) continue;
    const auto range = Find(session, action.gather[i]);
    if (!range || count == entries.size()) return Fault(session, "a Send of no memory");
    entries[count++] = range->entry;
    payload += range->entry.length;
  }
  sdp::wire::Encode(action.message, payload, message);
  tap_.Sent(session.id, now_, message.first(header), action.message, payload);
  work.opcode = fabric::Opcode::kSend;
  work.has_invalidate = action.invalidate_key.has_value();
  work.invalidate_key = action.invalidate_key.value_or(0);
  work.solicited = sdp::wire::IsSolicited(action.message);
  posting_.AddSend(count);
}

void Driver::Act(Session& session, const sdp::Read& action) {
  PostTransfer(session, fabric::Opcode::kRead, action.target, action.source);
}

void Driver::Act(Session& session, const sdp::Write& action) {
  PostTransfer(session, fabric::Opcode::kWrite, action.source, action.target);
}

void Driver::PostTransfer(Session& session, fabric::Opcode opcode, const sdp::OperationRange& local,
                          const sdp::RemoteRange& remote) {
  if (!session.transport.TakesWork()) return;
  const auto range = Find(session, local);
  if (!range) return Fault(session, "an RDMA transfer of no memory");
  const auto [work, entries] = posting_.StageSend(session.transport);
  work.opcode = opcode;
  work.remote = ToFabric(remote);
  entries[0] = range->entry;
  posting_.AddSend(1);
}

// --- memory --------------------------------------------------------------------------------------

std::optional<ResolvedRange> Driver::Find(Session& session, const sdp::OperationRange& range) {
  Operation* operation = operations_.Find(range.operation);
  if (operation == nullptr || operation->connection != session.id) return std::nullopt;
  return Resolve(*operation, range, session.transport.place());
}

void Driver::Act(Session& session, const sdp::CopyIn& action) {
  if (action.target.length == 0) return;
  const uint32_t buffer = static_cast<uint32_t>(action.buffer);
  const auto range = Find(session, action.target);
  if (!range || !session.transport.pool().HasReceiveBuffer(buffer))
    return Fault(session, "a copy to nowhere");
  const std::optional<ConstBytes> source =
      session.transport.pool().Take(buffer, action.buffer_offset, range->entry.length);
  if (!source) return Fault(session, "a copy from beyond a receive buffer");
  CopyBytes(Bytes(range->entry.address, range->entry.length), *source);
}

void Driver::Act(Session& session, const sdp::CopyOut& action) {
  if (action.source.length == 0) return;
  const auto range = Find(session, action.source);
  if (!range) return Fault(session, "a copy from nowhere");
  CopyToBuffer(session, action, ConstBytes(range->entry.address, range->entry.length));
}

void Driver::CopyToBuffer(Session& session, const sdp::CopyOut& action, ConstBytes source) {
  const uint32_t buffer = static_cast<uint32_t>(action.buffer);
  if (!session.transport.pool().HasSendBuffer(buffer)) return Fault(session, "a copy to nowhere");
  const Bytes target = session.transport.pool().SendBuffer(buffer);
  if (action.buffer_offset > target.size() ||
      source.size() > target.size() - action.buffer_offset) {
    return Fault(session, "a copy to beyond a send buffer");
  }
  CopyBytes(target.subspan(action.buffer_offset, source.size()), source);
}

void Driver::Act(Session& session, const sdp::Expose& action) {
  std::optional<fabric::RemoteRange> shown;
  if (const auto range = Find(session, action.range); range && session.transport.TakesWork()) {
    shown = session.transport.exposures().Expose(
        session.transport.fabric(), ExposureOf(action.advert), *range,
        action.right == sdp::Right::kRemoteWrite ? PeerMay::kWrite : PeerMay::kRead);
  }
  if (shown) {
    expose_answers_.PushBack(sdp::Exposed{action.advert, ToCore(*shown)});
  } else {
    expose_answers_.PushBack(sdp::ExposeFailed{action.advert});
  }
}

void Driver::Act(Session& session, const sdp::Withdraw& action) {
  Transport& transport = session.transport;
  if (transport.exposures().Withdraw(transport.fabric(), ExposureOf(action.advert))) {
    return PostInvalidations(transport);
  }
  answers_.PushBack(sdp::Withdrawn{action.advert});
}

// As many as there is room for: the rest when one of these has completed.
void Driver::PostInvalidations(Transport& transport) {
  Exposures& exposures = transport.exposures();
  while (const auto next = exposures.NextInvalidation()) {
    if (posting_.PostInvalidate(transport, static_cast<uint32_t>(next->id), next->key)) continue;
    exposures.Withdrawn(next->id);
    answers_.PushBack(sdp::Withdrawn{AdvertOf(next->id)});
  }
}

// --- time ----------------------------------------------------------------------------------------

void Driver::Act(Session& session, const sdp::SetTimer& action) {
  timers_.Set(session.id, action.timer, action.at);
}

void Driver::Act(Session& session, const sdp::ClearTimer& action) {
  timers_.Clear(session.id, action.timer);
}

}  // namespace esdp::provider
