#include "tests/sdp/pair.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "impl/base/bytes.h"

namespace esdp::sdp::testing {
namespace {

enum What {
  kHelloArrives,
  kEstablish,
  kStartWork,
  kDeliver,
  kFinishSend,
  kFinishRead,
  kFinishWrite,
  kWithdrawn,
  kDueTimer,
  kLose,
};

// What the transport calls the ends: a is at port 1000, b at port 2000.
PathAddresses AddressesOf(const Side& side) {
  PathAddresses addresses{1000, 2000, {}, {}};
  addresses.local[15] = 1;
  addresses.peer[15] = 2;
  if (!side.connects_first()) {
    std::swap(addresses.local_port, addresses.peer_port);
    std::swap(addresses.local, addresses.peer);
  }
  return addresses;
}

}  // namespace

Config SmallConfig(bool connecting) {
  Config config;
  config.connecting = connecting;
  config.receive_buffers = 8;
  config.receive_buffer_bytes = 1024 + 16;
  config.send_buffers = 4;
  config.coalesce_max = 200;
  config.zcopy_send_min = config.zcopy_receive_min = 4096;
  config.remote_invalidate = true;
  return config;
}

Pair::Pair(const PairOptions& options, uint64_t seed)
    : a(options.a, "a"), b(options.b, "b"), options_(options), random_(seed) {
  a.chance_ = Random(seed + 1);
  b.chance_ = Random(seed + 2);
  a.peer_max_adverts_ = options.b.max_adverts;
  b.peer_max_adverts_ = options.a.max_adverts;
  a.expose_failures_wanted_ = b.expose_failures_wanted_ = options.expose_failure_percent;
}

void Pair::Connect() {
  a.Feed(AskConnect{});
  Settle(Duration::zero());
}

void Pair::Collect(Side& side, Side& peer, std::vector<Possible>& possible) const {
  const auto add = [&](int what) { possible.push_back({&side, what}); };
  for (const auto& [timer, at] : side.timers_) {
    if (at <= now_ && (!side.lost_ || side.awaits_hello_)) add(kDueTimer);
  }
  const bool first = !side.connecting_ && !side.lost_ && !side.hello_ack_;
  const bool again = side.awaits_hello_ && peer.queue_pair_ == side.queue_pair_ + 1;
  if (peer.hello_ && (first || again) && !side.rejected_) add(kHelloArrives);
  const bool gives_up = side.disconnect_ && !side.disconnect_->orderly;
  if (side.lost_ && gives_up && side.core().phase() == Phase::kAborting) add(kLose);
  if (side.lost_) return;
  const bool accepted = side.connecting_ ? peer.hello_ack_ && peer.queue_pair_ == side.queue_pair_
                                         : side.hello_ack_.has_value();
  if (accepted && !side.established_) add(kEstablish);
  const bool ending = (side.disconnect_ && !side.disconnect_->orderly) || broken_;
  if (!side.work_.empty() && !ending) {
    const auto* read = std::get_if<Read>(&side.work_.front());
    // [2.7] The accepting side's queue pair is not ready to send before Established.
    if (read == nullptr || side.established_) add(kStartWork);
  }
  const bool may_arrive = side.established_ || !side.connecting_;
  if (HasMail(side, peer) && may_arrive && !broken_) add(kDeliver);
  if (!side.sent_.empty()) add(kFinishSend);
  if (!side.reading_.empty() && !peer.lost_ && !broken_) add(kFinishRead);
  if (!side.writing_.empty()) add(kFinishWrite);
  if (!side.withdrawing_.empty()) add(kWithdrawn);
  if (MayEnd(side, peer)) add(kLose);
}

bool Pair::HasMail(const Side& side, const Side& peer) {
  return !peer.outgoing_.empty() && peer.outgoing_.front().queue_pair == side.queue_pair_;
}

bool Pair::MayEnd(const Side& side, const Side& peer) const {
  // A connection ends when one side ends it; what was sent in order arrives before that.
  const bool own_end = side.disconnect_ && (!side.disconnect_->orderly || side.work_.empty());
  const bool peer_left =
      peer.lost_ ? peer.queue_pair_ >= side.queue_pair_ : peer.queue_pair_ > side.queue_pair_;
  const bool peer_end = peer_left && !HasMail(side, peer);
  return own_end || peer_end || broken_;
}

void Pair::Do(Side& side, Side& peer, int what) {
  side.now_ = peer.now_ = now_;
  switch (what) {
    case kHelloArrives:
      if (side.awaits_hello_) {
        EXPECT_EQ(peer.resume_port_, side.suspend_port_);
      }
      side.Feed(HelloArrived{*peer.hello_});
      break;
    case kEstablish: {
      Established established;
      if (side.connecting_) established.hello_ack = peer.hello_ack_;
      established.addresses = AddressesOf(side);
      established.reads_out_max = &side == &a ? options_.reads_a : options_.reads_b;
      established.reads_in_max = &side == &a ? options_.reads_b : options_.reads_a;
      side.established_ = true;
      side.Feed(established);
      break;
    }
    case kStartWork:
      StartWork(side, peer);
      break;
    case kDeliver:
      Deliver(side, peer);
      break;
    case kFinishSend: {
      const sdp::Send send = side.sent_.front();
      side.sent_.pop_front();
      for (uint32_t i = 0; i < send.gather_count; ++i) {
        --side.operations_.at(send.gather[i].operation).gathers;
      }
      if (send.send_buffer) side.send_buffer_busy_[*send.send_buffer] = false;
      side.Feed(SendFinished{});
      break;
    }
    case kFinishRead:
      FinishRead(side, peer);
      break;
    case kFinishWrite:
      FinishWrite(side);
      break;
    case kWithdrawn: {
      const AdvertId advert = side.withdrawing_.front();
      side.withdrawing_.pop_front();
      Side::Exposure& exposure = side.exposures_.at(advert);
      exposure.live = false;
      --side.operations_.at(exposure.range.operation).exposures;
      side.Feed(Withdrawn{advert});
      break;
    }
    case kDueTimer: {
      const auto due = std::find_if(side.timers_.begin(), side.timers_.end(),
                                    [&](const auto& timer) { return timer.second <= now_; });
      const Timer timer = due->first;
      side.timers_.erase(due);
      side.Feed(TimerFired{timer});
      break;
    }
    case kLose:
      Lose(side);
      break;
  }
}

void Pair::StartWork(Side& side, const Side& peer) {
  const Side::Work work = side.work_.front();
  side.work_.pop_front();
  if (const auto* read = std::get_if<Read>(&work)) {
    side.reading_.push_back(*read);
    return;
  }
  if (const auto* write = std::get_if<Write>(&work)) {
    const std::byte* from = side.At(write->source);
    Side::WireMessage wire;
    wire.queue_pair = side.queue_pair_;
    wire.payload.assign(from, from + write->source.length);
    wire.written_to = write->target;
    side.outgoing_.push_back(std::move(wire));
    side.writing_.push_back(*write);
    return;
  }
  const sdp::Send& send = std::get<sdp::Send>(work);
  if (send.send_buffer) side.send_buffer_busy_[*send.send_buffer] = true;
  // To a queue pair that is gone it leaves and is lost.
  const bool heard =
      peer.queue_pair_ <= side.queue_pair_ && !(peer.lost_ && peer.queue_pair_ == side.queue_pair_);
  Side::WireMessage message = side.Assemble(send);
  if (heard) side.outgoing_.push_back(std::move(message));
  side.sent_.push_back(send);
}

void Pair::Deliver(Side& side, Side& peer) {
  const Side::WireMessage wire = peer.outgoing_.front();
  peer.outgoing_.pop_front();
  if (wire.written_to) {
    const uint32_t length = static_cast<uint32_t>(wire.payload.size());
    std::byte* to = side.Reached(*wire.written_to, length, Right::kRemoteWrite);
    if (to != nullptr) CopyBytes(Bytes(to, length), wire.payload);
    return;
  }
  ASSERT_FALSE(side.posted_.empty()) << side.name_ << ": credits were overdrawn";
  const ReceiveBuffer buffer = side.posted_.front();
  side.posted_.pop_front();
  constexpr uint32_t kHeader = wire::kSinkAvailBytes;
  std::vector<std::byte>& memory = side.receive_memory_[buffer];
  const uint32_t room = side.receive_bytes_.at(buffer);
  memory.resize(room + kHeader);
  const size_t header =
      std::holds_alternative<wire::SrcAvail>(wire.message.body)    ? wire::kSrcAvailBytes
      : std::holds_alternative<wire::SinkAvail>(wire.message.body) ? wire::kSinkAvailBytes
                                                                   : wire::kBaseHeaderBytes;
  EXPECT_LE(wire.payload.size() + header, room) << side.name_ << ": a message beyond its buffer";
  CopyBytes(Bytes(memory).subspan(kHeader, wire.payload.size()), wire.payload);
  if (wire.invalidate) {
    for (auto& [advert, exposure] : side.exposures_) {
      if (exposure.key == *wire.invalidate) exposure.live = false;
    }
  }
  side.mode_watch_.OnArrived(wire.message);
  side.Feed(MessageArrived{wire.message, buffer, kHeader,
                           static_cast<uint32_t>(wire.payload.size()), wire.invalidate});
}

void Pair::FinishRead(Side& side, Side& peer) {
  const Read read = side.reading_.front();
  side.reading_.pop_front();
  const std::byte* from = peer.Reached(read.source, read.target.length, Right::kRemoteRead);
  ASSERT_NE(from, nullptr);
  CopyBytes(Bytes(side.At(read.target), read.target.length), ConstBytes(from, read.target.length));
  --side.operations_.at(read.target.operation).reads;
  side.Feed(ReadFinished{});
}

void Pair::FinishWrite(Side& side) {
  const Write write = side.writing_.front();
  side.writing_.pop_front();
  --side.operations_.at(write.source.operation).writes;
  side.Feed(WriteFinished{});
}

// The provider lets go of everything, then tells.
void Pair::Lose(Side& side) {
  for (auto& [advert, exposure] : side.exposures_) {
    exposure.live = false;
    exposure.withdrawn = true;
  }
  for (auto& [id, operation] : side.operations_) operation.exposures = 0;
  while (!side.withdrawing_.empty()) {
    const AdvertId advert = side.withdrawing_.front();
    side.withdrawing_.pop_front();
    side.Feed(Withdrawn{advert});
  }
  side.lost_ = true;
  while (HasMail(side, PeerOf(side))) PeerOf(side).outgoing_.pop_front();
  // What an abort left on the wire is gone; what was sent in order still arrives.
  if ((side.disconnect_ && !side.disconnect_->orderly) || broken_) side.outgoing_.clear();
  side.work_.clear();
  side.sent_.clear();
  side.reading_.clear();
  side.writing_.clear();
  side.posted_.clear();
  side.send_buffer_busy_.clear();
  for (auto& [id, operation] : side.operations_) {
    operation.gathers = operation.reads = operation.writes = 0;
  }
  side.Feed(ConnectionLost{!broken_.has_value(), broken_.value_or(false)});
}

void Pair::Break(bool fabric_error) { broken_ = fabric_error; }

bool Pair::Happen() {
  possible_.clear();
  Collect(a, b, possible_);
  Collect(b, a, possible_);
  if (possible_.empty()) return false;
  const Possible chosen = possible_[random_.Below(possible_.size())];
  now_ += std::chrono::microseconds(random_.Below(20));
  Do(*chosen.side, PeerOf(*chosen.side), chosen.what);
  return true;
}

Time Pair::EarliestTimer() const {
  Time earliest = kTimeInfinite;
  for (const Side* side : {&a, &b}) {
    if (side->lost_ && !side->awaits_hello_) continue;
    for (const auto& [timer, at] : side->timers_) earliest = std::min(earliest, at);
  }
  return earliest;
}

bool Pair::LetTimePass() {
  const Time earliest = EarliestTimer();
  if (earliest == kTimeInfinite) return false;
  now_ = std::max(now_, earliest);
  return true;
}

void Pair::Settle(Duration patience) {
  const Time end = AddSaturating(now_, patience);
  int events = 0;
  do {
    while (Happen()) {
      ASSERT_LT(++events, 200'000) << "no end of events: a livelock";
    }
  } while (EarliestTimer() <= end && LetTimePass());
}

}  // namespace esdp::sdp::testing
