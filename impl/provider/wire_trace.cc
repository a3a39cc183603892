#include "impl/provider/wire_trace.h"

#include "impl/sdp/wire/codec.h"

namespace esdp::provider {

void WireTrace::OnMessage(const WireMessage& message) {
  const bool sent = message.direction == WireMessage::Direction::kSent;
  const sdp::wire::BaseHeader& base = message.message.base;
  trace_.Add(message.at, sent ? "sent" : "received",
             sdp::wire::NameOf(sdp::wire::IdOf(message.message)),
             {{"connection", static_cast<uint64_t>(message.connection)},
              {"mseq", base.sequence},
              {"bufs", base.buffers},
              {"payload", message.payload_bytes}});
}

}  // namespace esdp::provider
