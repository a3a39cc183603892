#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "tests/fuzz/core_end.h"
#include "tests/fuzz/drawn.h"

// A drawn list of inputs into the core. Each byte is something that happens: an application asks, a
// fabric gets on with its work, a message arrives. Either two honest cores talk, and none may ever
// accuse the other, lose a byte, stall or leave an operation without its end; or one core hears
// whatever the bytes make of a message, and may end the connection but nothing worse.

namespace esdp::sdp::fuzz {
namespace {

constexpr int kStepsMax = 100'000;  // far more than an honest pair needs to come to rest

Config DrawConfig(Drawn& drawn, bool connecting) {
  Config config;
  config.connecting = connecting;
  constexpr uint16_t kBuffers[] = {3, 4, 8, 16};
  constexpr uint32_t kSizes[] = {37, 64, 200, 1040};
  config.receive_buffers = drawn.OneOf(kBuffers);
  config.receive_buffer_bytes = drawn.OneOf(kSizes);
  const uint8_t traits = drawn.Byte();
  config.send_buffers = static_cast<uint16_t>(1 + traits % 4);
  config.remote_invalidate = (traits & 4) != 0;
  config.can_expose = (traits & 8) == 0;
  config.max_adverts = static_cast<uint8_t>(1 + (traits >> 4) % 4);
  config.read_bytes_max = (traits & 64) != 0 ? 300 : 1u << 30;
  config.send_work_max = (traits & 128) != 0 ? 8 : 64;
  config.coalesce_max = 200;
  if ((traits & 5) == 5) config.receive_buffer_bytes_max = 2 * config.receive_buffer_bytes;
  if ((traits & 10) == 10) config.peer_receive_buffer_bytes = 300;
  if ((traits & 3) == 3) {
    config.receive_buffers_max = static_cast<uint16_t>(4 * config.receive_buffers);
    config.receive_window_bytes = ~uint64_t{0};
  }
  return config;
}

// --- two cores ---

class Pair {
 public:
  explicit Pair(Drawn& drawn)
      : drawn_(drawn),
        a_(DrawConfig(drawn, true), 1 + drawn.Below(3)),
        b_(DrawConfig(drawn, false), 1 + drawn.Below(3)) {
    a_.Feed(AskConnect{});
    b_.SetUp(&*a_.hello, nullptr, 1);
    a_.SetUp(nullptr, &*b_.hello_ack, 1);
  }

  void Play() {
    while (!drawn_.empty()) Happen(drawn_.Byte());
    ComeToRest();
  }

 private:
  CoreEnd& PeerOf(CoreEnd& end) { return &end == &a_ ? b_ : a_; }

  void Happen(uint8_t what) {
    CoreEnd& end = (what & 128) != 0 ? b_ : a_;
    CoreEnd& peer = PeerOf(end);
    switch (what % 32) {
      case 0:
      case 1:
      case 2:
        return end.AskToSend(drawn_);
      case 3:
      case 4:
      case 5: {
        constexpr uint32_t kLengths[] = {0, 1, 100, 1000, 2000, 5000};
        const uint32_t length = drawn_.OneOf(kLengths);
        return end.AskToReceive(length, drawn_);
      }
      case 6:
        a_.content_is_known = b_.content_is_known = false;
        return end.Cancel(drawn_);
      case 7:
        return end.Shut();
      case 8:
        return (drawn_.Byte() & 15) == 0 ? end.Close(true) : end.Close(false);
      case 9:
        return Pass(end);
      case 10:
        return Break(end, peer);
      case 11:
        return end.Want(drawn_.Byte());
      case 12:
        return end.Await();
      default:
        for (int times = 1 + what % 3; times > 0; --times) Progress(end, what % 7);
    }
  }

  // A timer comes due for whoever has the first.
  void Pass(CoreEnd& end) {
    const Time next = std::min(a_.next_timer(), b_.next_timer());
    if (next == kTimeInfinite) return;
    const Time now = std::max({next, a_.now(), b_.now()});
    a_.PassTime(now);
    b_.PassTime(now);
    if (end.next_timer() <= now) end.FireTimer();
  }

  void Break(CoreEnd& end, CoreEnd& peer) {
    if ((drawn_.Byte() & 31) != 0) return;
    end.Lose(false, true);
    peer.Lose(false, false);
  }

  bool Progress(CoreEnd& end, int what) {
    CoreEnd& peer = PeerOf(end);
    switch (what) {
      case 0:
        return end.FinishSend();
      case 1:
        return end.FinishRead(&peer);
      case 2:
        return end.FinishWrite();
      case 3:
        return end.FinishWithdrawal();
      case 4:
        return LoseAtTheEnd(end, peer);
      default:
        return Deliver(end, peer);
    }
  }

  bool LoseAtTheEnd(CoreEnd& end, CoreEnd& peer) {
    const bool told = peer.lost() && peer.outgoing.empty();
    if (end.lost() || (!end.MayLose() && !told)) return false;
    end.Lose(true, false);
    return true;
  }

  bool Deliver(CoreEnd& end, CoreEnd& peer) {
    if (peer.outgoing.empty() || end.lost()) return false;
    const Parcel parcel = peer.outgoing.front();
    peer.outgoing.pop_front();
    if (parcel.write) {
      end.Place(*parcel.write, parcel.bytes);
    } else {
      Require(end.Arrive(parcel.message, parcel.bytes, parcel.invalidate));
    }
    return true;
  }

  void ProgressAll() {
    int steps = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (int what = 0; what < 6; ++what) {
        moved |= Progress(a_, what);
        moved |= Progress(b_, what);
      }
      Require(++steps < kStepsMax);
    }
  }

  // What is due happens; time passes as long as that helps.
  void Settle() {
    ProgressAll();
    for (int timers = 0; timers < 200; ++timers) {
      if (std::min(a_.next_timer(), b_.next_timer()) == kTimeInfinite) return;
      Pass(a_.next_timer() <= b_.next_timer() ? a_ : b_);
      ProgressAll();
    }
  }

  bool BothAreOver() const { return a_.core().closed() && b_.core().closed(); }

  // Both read all there is, close and end; nothing is left.
  void ComeToRest() {
    constexpr uint8_t kWaitAll[] = {8};
    const bool reads_all = !a_.closed() && !b_.closed();
    for (CoreEnd* end : {&a_, &b_}) {
      if (!end->shut()) end->Shut();
    }
    for (int rounds = 0; rounds < 100 && !BothAreOver(); ++rounds) {
      Settle();
      for (CoreEnd* end : {&a_, &b_}) {
        Drawn traits(kWaitAll, 1);
        if (!end->closed() && !end->pending_receive()) end->AskToReceive(100'000, traits);
      }
    }
    for (CoreEnd* end : {&a_, &b_}) end->Close(false);
    Settle();
    Require(a_.lost() && b_.lost());
    if (reads_all && a_.cause() == Outcome::kDone && b_.cause() == Outcome::kDone) {
      Require(a_.received() == b_.sent() && b_.received() == a_.sent());
    }
    a_.RequireOver();
    b_.RequireOver();
  }

  Drawn& drawn_;
  CoreEnd a_, b_;
};

// --- one core, and a peer that says anything ---

class Solo {
 public:
  explicit Solo(Drawn& drawn)
      : drawn_(drawn),
        connecting_(drawn.Flag()),
        end_(DrawConfig(drawn, connecting_), drawn.Below(3)) {
    end_.peer_is_honest = end_.content_is_known = false;
    wire::Message message;
    message.base.buffers = static_cast<uint16_t>(3 + drawn.Below(62));
    constexpr uint32_t kSizes[] = {37, 64, 1040, 1u << 16, 1u << 31};
    const uint32_t size = drawn.OneOf(kSizes);
    const uint8_t traits = drawn.Byte();
    if (connecting_) {
      wire::HelloAck hello_ack;
      hello_ack.max_adverts = traits % 8;
      hello_ack.capabilities = traits >> 6;
      hello_ack.actual_receive_size = size;
      message.body = hello_ack;
      end_.Feed(AskConnect{});
      end_.SetUp(nullptr, &message, drawn.Below(3));
    } else {
      wire::Hello hello;
      hello.max_adverts = traits % 8;
      hello.capabilities = traits >> 6;
      hello.local_receive_size = size;
      message.body = hello;
      end_.SetUp(&message, nullptr, drawn.Below(3));
    }
  }

  void Play() {
    while (!drawn_.empty()) Happen(drawn_.Byte());
    end_.Close(true);
    end_.Lose(true, false);
    // A peer that has moved the connection does not come back: time ends it.
    for (int timers = 0; timers < 20 && !end_.core().closed(); ++timers) {
      end_.FireTimer();
      end_.Lose(true, false);
    }
    end_.RequireOver();
  }

 private:
  void Happen(uint8_t what) {
    if (what >= 96) return Hear(what);
    switch (what % 16) {
      case 0:
      case 1:
        return end_.AskToSend(drawn_);
      case 2:
      case 3:
        return end_.AskToReceive(drawn_.Byte() * 16u, drawn_);
      case 4:
        return end_.Cancel(drawn_);
      case 5:
        return end_.Shut();
      case 6:
        return end_.Close(drawn_.Below(8) == 0);
      case 7:
        end_.FireTimer();
        return;
      case 8:
        end_.FinishRead(nullptr);
        return;
      case 9:
        end_.FinishWrite();
        return;
      case 10:
        end_.FinishWithdrawal();
        return;
      case 11:
        return Lose();
      case 12:
        return end_.Want(drawn_.Byte());
      case 13:
        return end_.Await();
      default:
        end_.FinishSend();
    }
  }

  void Lose() {
    if (drawn_.Below(64) != 0) return;
    const bool clean = drawn_.Flag();  // one after the other, so that each compiler draws the same
    end_.Lose(clean, drawn_.Flag());
  }

  // A message of any kind: its header is honest unless a byte says otherwise.
  void Hear(uint8_t what) {
    wire::Message message;
    message.body = DrawBody(what % 16);
    const uint8_t lies = drawn_.Byte();
    if (!end_.outgoing.empty() && (lies & 1) == 0) {
      heard_ = end_.outgoing.back().message.base.sequence;
      end_.outgoing.clear();
    }
    message.base.sequence = ++sequence_;
    message.base.acknowledged = heard_;
    message.base.buffers = static_cast<uint16_t>((lies & 2) != 0 ? drawn_.Byte() : 64);
    if ((lies & 4) != 0) message.base.flags = drawn_.Byte() & 7;
    if ((lies & 8) != 0 && (lies & 0xf0) == 0xf0) message.base.sequence = drawn_.Word();
    if ((lies & 8) != 0 && (lies & 0xf0) == 0xe0) message.base.acknowledged = drawn_.Word();
    std::vector<uint8_t> payload;
    if (wire_may_carry(message) && (lies & 16) != 0) payload.resize(1 + drawn_.Byte());
    std::optional<uint32_t> invalidate;
    if ((lies & 0xe0) == 0xa0) invalidate = 1 + drawn_.Below(8);
    end_.Arrive(message, payload, invalidate);
  }

  static bool wire_may_carry(const wire::Message& message) {
    return std::holds_alternative<wire::Data>(message.body) ||
           std::holds_alternative<wire::SrcAvail>(message.body) ||
           std::holds_alternative<wire::SinkAvail>(message.body);
  }

  uint32_t DrawLength() {
    const uint8_t kind = drawn_.Byte();
    if (kind < 200) return kind * 16u;
    return kind < 250 ? drawn_.Word() : 1u << 31;
  }

  wire::Body DrawBody(uint32_t which) {
    switch (which) {
      case 0:
      case 1:
        return wire::Data{};
      case 2:
        return wire::SrcAvail{DrawLength(), 1 + drawn_.Below(4), drawn_.Word()};
      case 3:
        return wire::SinkAvail{DrawLength(), 1 + drawn_.Below(4), drawn_.Word(), drawn_.Below(8)};
      case 4:
        return wire::RdmaRdCompl{DrawLength()};
      case 5:
        return wire::RdmaWrCompl{DrawLength()};
      case 6:
        return wire::SendSm{};
      case 7: {
        const uint8_t change = drawn_.Byte();
        return wire::ModeChange{(change & 4) != 0, wire::Mode{static_cast<uint8_t>(change % 3)}};
      }
      case 8:
        return wire::SrcAvailCancel{};
      case 9:
        return wire::SinkAvailCancel{};
      case 10:
        return wire::SinkCancelAck{};
      case 11:
        return wire::ChRcvBuf{DrawLength()};
      case 12:
        return wire::ChRcvBufAck{DrawLength()};
      case 13:
        return drawn_.Flag() ? wire::Body{wire::SuspComm{drawn_.Word()}} : wire::SuspCommAck{};
      case 14:
        return wire::DisConn{};
      default:
        return drawn_.Below(4) == 0 ? wire::Body{wire::AbortConn{}} : wire::Data{};
    }
  }

  Drawn& drawn_;
  bool connecting_;
  CoreEnd end_;
  uint32_t sequence_ = 0, heard_ = 0;
};

}  // namespace
}  // namespace esdp::sdp::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  esdp::sdp::fuzz::Drawn drawn(data, size);
  if (drawn.Flag()) {
    esdp::sdp::fuzz::Pair(drawn).Play();
  } else {
    esdp::sdp::fuzz::Solo(drawn).Play();
  }
  return 0;
}
