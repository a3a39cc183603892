#include "impl/sdp/lifecycle/handshake.h"

#include <algorithm>
#include <optional>
#include <variant>

#include "impl/sdp/common/limits.h"

namespace esdp::sdp {
namespace {

// [R25.7]
uint8_t Capabilities(const Config& config) {
  if (config.as_deployed) return 0;
  uint8_t capabilities = wire::kCapabilityReturnToken;
  if (config.remote_invalidate) capabilities |= wire::kCapabilityInvalidate;
  if (config.peer_moves != PeerMoves::kRefused) capabilities |= wire::kCapabilityMayBeMoved;
  return capabilities;
}

void ReadCapabilities(uint8_t capabilities, PeerParameters& peer) {
  peer.accepts_invalidate = (capabilities & wire::kCapabilityInvalidate) != 0;
  peer.knows_token = (capabilities & wire::kCapabilityReturnToken) != 0;
  peer.may_be_moved = (capabilities & wire::kCapabilityMayBeMoved) != 0;
}

// [R19.3]
uint8_t MaxAdverts(const Config& config) { return config.as_deployed ? 1 : config.max_adverts; }

// The checks that both answers have in common.
const char* CheckParameters(const wire::BaseHeader& base, uint8_t major_version,
                            uint32_t receive_bytes, const PeerParameters& peer) {
  // The port space is shared with other protocols: insist on the shape of a first message [R2.6.6].
  if (base.flags != 0) return "Flags of the first message: not 0";
  if (base.sequence != 0) return "MSeq of the first message: not 0";
  if (base.acknowledged != 0) return "MSeqAck of the first message: not 0";
  // [R2.8.1, R2.8.2, R2.8.4, R2.8.5, R3.3.4]
  if (major_version != kMajorVersion) return "MajV: not supported";
  if (peer.max_adverts == 0) return "MaxAdverts: is 0";
  if (peer.buffers < kBuffersMin) return "Bufs: fewer than 3";
  if (receive_bytes < wire::kReceiveBufferBytesMin) return "receive buffer size: below 37 bytes";
  if (receive_bytes > kReceiveBufferBytesMax) return "receive buffer size: above 2^31 bytes";
  return nullptr;
}

}  // namespace

void PeerParameters::AddTo(Digest& digest) const {
  digest.Add(receive_buffer_bytes).Add(buffers).Add(max_adverts).Add(minor_version);
  digest.Add(accepts_invalidate).Add(knows_token).Add(may_be_moved);
}

wire::Message MakeHello(const Config& config, uint16_t buffers_posted,
                        const wire::ReturnToken& token) {
  wire::Hello hello;
  hello.major_version = kMajorVersion;
  hello.minor_version = kMinorVersion;
  hello.ip_version = config.ip_version;
  hello.capabilities = Capabilities(config);
  hello.max_adverts = MaxAdverts(config);  // [R3.3.3]
  const uint32_t wish = config.peer_receive_buffer_bytes;
  hello.desired_remote_receive_size = wish != 0 ? wish : config.receive_buffer_bytes;
  hello.local_receive_size = config.receive_buffer_bytes;
  hello.local_port = config.local_port;
  hello.source_address = config.local_address;
  hello.destination_address = config.peer_address;
  hello.return_token = token;
  wire::Message message;
  message.base.buffers = buffers_posted;
  message.body = hello;
  return message;
}

wire::Message MakeHelloAck(const Config& config, uint16_t buffers_posted,
                           const PeerParameters& peer) {
  wire::HelloAck hello_ack;
  hello_ack.major_version = kMajorVersion;
  hello_ack.minor_version = peer.minor_version;  // [R2.8.6]
  hello_ack.capabilities = Capabilities(config);
  hello_ack.max_adverts = MaxAdverts(config);
  hello_ack.actual_receive_size = config.receive_buffer_bytes;
  hello_ack.return_token = config.return_token;
  wire::Message message;
  message.base.buffers = buffers_posted;
  message.body = hello_ack;
  return message;
}

bool ReturnsAreGuarded(const Config& config, const PeerParameters& peer) {
  return !config.as_deployed && peer.knows_token && config.return_token != wire::ReturnToken{};
}

const char* CheckHello(const wire::Message& message, PeerParameters& peer) {
  const auto* hello = std::get_if<wire::Hello>(&message.body);
  if (hello == nullptr) return "MID: the first message is no Hello";
  // [R2.8.3]
  if (hello->ip_version != 4 && hello->ip_version != 6) return "IPV: neither 4 nor 6";
  // [R3.3.6]
  const bool extended = (hello->capabilities & wire::kCapabilityExtendedMaxAdverts) != 0;
  peer.receive_buffer_bytes = hello->local_receive_size;
  peer.buffers = message.base.buffers;
  peer.max_adverts = extended ? std::max<uint16_t>(hello->max_adverts, hello->extended_max_adverts)
                              : hello->max_adverts;
  if (hello->max_adverts == 0) peer.max_adverts = 0;
  peer.minor_version = std::min(hello->minor_version, kMinorVersion);  // [R2.8.6]
  ReadCapabilities(hello->capabilities, peer);
  return CheckParameters(message.base, hello->major_version, hello->local_receive_size, peer);
}

const char* CheckHelloAck(const wire::Message& message, PeerParameters& peer) {
  const auto* hello_ack = std::get_if<wire::HelloAck>(&message.body);
  if (hello_ack == nullptr) return "MID: the answer is no HelloAck";
  peer.receive_buffer_bytes = hello_ack->actual_receive_size;
  peer.buffers = message.base.buffers;
  peer.max_adverts = hello_ack->max_adverts;
  peer.minor_version = std::min(hello_ack->minor_version, kMinorVersion);
  ReadCapabilities(hello_ack->capabilities, peer);
  peer.return_token = peer.knows_token ? hello_ack->return_token : wire::ReturnToken{};
  return CheckParameters(message.base, hello_ack->major_version, hello_ack->actual_receive_size,
                         peer);
}

const char* Handshake::OnHelloAck(const std::optional<wire::Message>& hello_ack,
                                  uint32_t message_bytes) {
  const char* refusal = hello_ack ? CheckHelloAck(*hello_ack, peer_) : "HelloAck: missing";
  if (refusal != nullptr) return refusal;
  if (peer_.receive_buffer_bytes < message_bytes) return "ActRcvSz: smaller than before";
  const bool first = message_bytes == 0;
  if (!first || !config_.as_deployed) config_.return_token = peer_.return_token;
  return nullptr;
}

// [R12.5], [R12.10]
const char* Handshake::CheckReturn(const wire::Message& message) const {
  const auto* hello = std::get_if<wire::Hello>(&message.body);
  if (hello == nullptr) return "Hello: none is expected";
  if (hello->ip_version != config_.ip_version) return "IPV: not that of the suspended connection";
  if (hello->source_address != config_.peer_address) return "source address: not the peer's";
  if (hello->destination_address != config_.local_address) return "destination address: not ours";
  if (hello->local_port != config_.peer_port) return "local port: not the peer's";
  if (ReturnsAreGuarded(config_, peer_) && hello->return_token != config_.return_token) {
    return "return token: not that of the connection";
  }
  return nullptr;
}

const char* Handshake::CheckHelloOfReturn(const wire::Message& hello, uint32_t message_bytes) {
  PeerParameters peer;
  if (const char* refusal = CheckHello(hello, peer)) return refusal;
  // Copied payload that waits was cut for buffers of that size.
  return peer.receive_buffer_bytes < message_bytes ? "LocalRcvSz: smaller than before" : nullptr;
}

void Handshake::OnPath(const std::optional<PathAddresses>& addresses) {
  if (!addresses) return;
  config_.local_port = addresses->local_port;
  config_.peer_port = addresses->peer_port;
  config_.local_address = addresses->local;
  config_.peer_address = addresses->peer;
}

bool Handshake::MayMovePeer() const {
  if (config_.as_deployed || peer_.deployed()) return false;  // [19] it ignores SuspComm
  if (ReturnsAreGuarded(config_, peer_)) return peer_.may_be_moved;
  return config_.peer_moves == PeerMoves::kUnguarded;
}

const char* Handshake::RefusalOfMove() const {
  if (config_.peer_moves == PeerMoves::kRefused) return "SuspComm: this side is not to be moved";
  if (config_.peer_moves == PeerMoves::kGuarded && !ReturnsAreGuarded(config_, peer_)) {
    return "SuspComm: from a peer that knows no return token";
  }
  return nullptr;
}

void Handshake::AddTo(Digest& digest) const {
  digest.Add(config_.connecting).Add(early_.size());
  peer_.AddTo(digest);
  for (const MessageArrived& arrived : early_) digest.Add(arrived.message.base.sequence);
}

}  // namespace esdp::sdp
