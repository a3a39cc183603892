#include "tests/sim/hostile.h"

#include <algorithm>
#include <array>

#include "impl/sdp/wire/codec.h"

namespace esdp::simulation {

namespace wire = sdp::wire;

void HostilePeer::OnTransmit(const fabric::sim::WireEnd& from, fabric::sim::Frame& frame) {
  if (chance_ == 0 || frame.kind != fabric::sim::FrameKind::kSend || frame.payload.empty()) return;
  wire::Message message;
  if (!wire::Decode(frame.payload, message)) {
    if (const auto* advert = std::get_if<wire::SrcAvail>(&message.body)) {
      keys_.push_back(advert->remote_key);
    }
    if (const auto* advert = std::get_if<wire::SinkAvail>(&message.body)) {
      keys_.push_back(advert->remote_key);
    }
  }
  if (!random_.Chance(chance_, 1'000'000)) return;
  told_(from.connection);
  if (random_.Chance(1, 2)) {
    Mutate(frame.payload);
  } else {
    Invent(frame.payload);
  }
}

void HostilePeer::OnPrivateData(const fabric::sim::WireEnd& from, std::vector<std::byte>& data) {
  if (chance_ == 0 || data.empty() || !random_.Chance(1, 10)) return;
  told_(from.connection);
  marks_->Hit(from.connecting ? "a hostile Hello" : "a hostile HelloAck");
  wire::Message opening;
  if (random_.Chance(1, 2) || wire::Decode(data, opening)) return Mutate(data);
  const size_t size = data.size();
  Lie(opening);
  (void)wire::Encode(opening, 0, data);
  data.resize(size);
}

// Another value in a field, which may be one that nobody means.
void HostilePeer::Lie(wire::Message& opening) {
  const uint32_t size = DrawLength();
  const auto few = static_cast<uint8_t>(random_.Below(4));
  const uint64_t field = random_.Below(4);
  if (field == 0) opening.base.buffers = static_cast<uint16_t>(random_.Below(5));
  if (auto* hello = std::get_if<wire::Hello>(&opening.body)) {
    if (field == 1) hello->max_adverts = few;
    if (field == 2) hello->local_receive_size = size;
    if (field == 3) hello->desired_remote_receive_size = size;
  }
  if (auto* ack = std::get_if<wire::HelloAck>(&opening.body)) {
    if (field == 1) ack->max_adverts = few;
    if (field == 2) ack->actual_receive_size = size;
    if (field == 3) ack->minor_version = few;
  }
}

void HostilePeer::Mutate(std::vector<std::byte>& payload) {
  switch (random_.Below(4)) {
    case 0:  // a bit of the header
      payload[random_.Below(std::min<size_t>(payload.size(), wire::kHeaderBytesMax))] ^=
          std::byte{1} << random_.Below(8);
      break;
    case 1:  // a field of the base header
      payload[random_.Below(std::min<size_t>(payload.size(), wire::kBaseHeaderBytes))] =
          std::byte(random_.Below(256));
      break;
    case 2:
      payload.resize(random_.Below(payload.size()));
      break;
    default:
      payload.resize(payload.size() + random_.Between(1, 64), std::byte{0xa5});
  }
}

// Another message with the sequence number and the credits of the one whose place it takes.
void HostilePeer::Invent(std::vector<std::byte>& payload) {
  wire::Message genuine;
  wire::Message message;
  if (!wire::Decode(payload, genuine)) message.base = genuine.base;
  message.body = DrawBody();
  if (random_.Chance(1, 4)) message.base.flags = static_cast<uint8_t>(random_.Below(256));
  if (random_.Chance(1, 8)) message.base.buffers = static_cast<uint16_t>(random_.Next());
  if (random_.Chance(1, 8)) message.base.acknowledged += static_cast<uint32_t>(random_.Below(5));
  std::array<std::byte, 256> header{};
  const size_t extra = random_.Chance(1, 2) ? 0 : random_.Between(1, 200);
  const size_t bytes = wire::Encode(message, extra, header);
  payload.assign(header.begin(), header.begin() + static_cast<ptrdiff_t>(bytes));
  payload.resize(bytes + extra, std::byte{0x5a});
}

uint32_t HostilePeer::DrawLength() {
  constexpr std::array<uint32_t, 8> kLengths{0, 1, 2, 64, 4096, 1u << 20, 1u << 31, ~0u};
  return random_.Chance(1, 4) ? static_cast<uint32_t>(random_.Next())
                              : kLengths[random_.Below(kLengths.size())];
}

uint32_t HostilePeer::DrawKey() {
  if (keys_.empty() || random_.Chance(1, 4)) return static_cast<uint32_t>(random_.Next());
  return keys_[random_.Below(keys_.size())];
}

wire::Body HostilePeer::DrawBody() {
  switch (random_.Below(17)) {
    case 0:
      return wire::SrcAvail{DrawLength(), DrawKey(), random_.Below(2)};
    case 1:
      return wire::SinkAvail{DrawLength(), DrawKey(), random_.Below(2),
                             static_cast<uint32_t>(random_.Below(3))};
    case 2:
      return wire::RdmaRdCompl{DrawLength()};
    case 3:
      return wire::RdmaWrCompl{DrawLength()};
    case 4:
      return wire::SendSm{};
    case 5:
      return wire::ModeChange{random_.Chance(1, 2), static_cast<wire::Mode>(random_.Below(3))};
    case 6:
      return wire::SrcAvailCancel{};
    case 7:
      return wire::SinkAvailCancel{};
    case 8:
      return wire::SinkCancelAck{};
    case 9:
      return wire::ChRcvBuf{DrawLength()};
    case 10:
      return wire::ChRcvBufAck{DrawLength()};
    case 11:
      return wire::SuspComm{random_.Next()};
    case 12:
      return wire::SuspCommAck{};
    case 13:
      return wire::DisConn{};
    case 14:
      return wire::AbortConn{};
    case 15:
      return wire::Hello{};
    default:
      return wire::Data{};
  }
}

}  // namespace esdp::simulation
