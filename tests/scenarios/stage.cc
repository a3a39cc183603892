#include "tests/scenarios/stage.h"

#include "impl/sdp/wire/codec.h"
#include "impl/sdp/wire/text.h"

namespace esdp::sdp::scenarios {
namespace {

constexpr uint64_t kFirstAddress = 0x1000;

std::string Text(uint64_t number) { return std::to_string(number); }
std::string Text(OperationId operation) { return "#" + Text(static_cast<uint32_t>(operation)); }
std::string Text(const OperationRange& range) {
  return Text(range.offset) + "..+" + Text(range.length) + " of " + Text(range.operation);
}
// The core numbers its sink adverts from 2^31 on.
std::string Text(AdvertId advert) {
  const auto number = static_cast<uint32_t>(advert);
  return (number >> 31 != 0 ? "sink advert " : "advert ") + Text(uint64_t{number & 0x7fffffffu});
}
std::string Text(const RemoteRange& remote) {
  return "key " + Text(remote.key) + " at " + Text(remote.address);
}

std::string TextOf(wire::Message message, uint32_t payload) {
  const size_t header = wire::HeaderBytes(wire::IdOf(message));
  message.base.length = static_cast<uint32_t>(header) + payload;
  return wire::ToText(message);
}

}  // namespace

Stage::End::End(const char* name_given, bool connecting) : name(name_given) {
  config.connecting = connecting;
  config.receive_buffers = 8;
  config.receive_buffer_bytes = 1024 + 16;
  config.send_buffers = 4;
  config.coalesce_max = 200;
  config.zcopy_send_min = config.zcopy_receive_min = 4096;
  config.remote_invalidate = true;
}

Stage::Stage(bool immediate) : a_("a", true), b_("b", false) {
  if (!immediate) a_.config.immediate_max = b_.config.immediate_max = 0;
}

// --- what the cores do ---

void Stage::Feed(End& end, const Input& input) {
  if (!end.core) end.core.emplace(end.config);
  Actions actions;
  end.core->Step(input, now_, actions);
  for (const Action& action : actions) Run(end, action);
  if (std::exchange(to_prepare_, false)) Feed(end, ReceivesPrepared{true});
  if (!to_expose_) return;
  const AdvertId advert = *to_expose_;
  to_expose_.reset();
  if (!end.exposes) {
    end.exposures.erase(advert);
    Say(end, "cannot expose " + Text(advert));
    Feed(end, ExposeFailed{advert});
    return;
  }
  Exposure& exposure = end.exposures.at(advert);
  exposure.remote = {(&end == &a_ ? 100u : 200u) + ++end.keys,
                     kFirstAddress + exposure.range.offset};
  Say(end, "exposes " + Text(exposure.range) +
               (exposure.right == Right::kRemoteRead ? " for reading: " : " for writing: ") +
               Text(advert) + ", " + Text(exposure.remote));
  Feed(end, Exposed{advert, exposure.remote});
}

void Stage::Run(End& end, const Action& action) {
  std::visit([&](const auto& it) { Act(end, it); }, action);
}

void Stage::Act(End& end, const StartConnect& action) {
  end.hello = action.hello;
  Say(end, "requests: " + TextOf(action.hello, 0));
}
void Stage::Act(End& end, const AcceptConnection& action) {
  end.hello_ack = action.hello_ack;
  Say(end, "accepts: " + TextOf(action.hello_ack, 0));
}
void Stage::Act(End& end, const RejectConnection& action) {
  Say(end, std::string("rejects: ") + action.reason);
  end.lost = true;
}
void Stage::Act(End& end, const ReportConnected&) { Say(end, "is connected"); }
void Stage::Act(End& end, const ReplaceQueuePair&) {
  Say(end, "makes a new queue pair");
  ++end.queue_pair;
  end.established = end.lost = false;
  end.disconnect.reset();
  end.hello.reset();
  end.hello_ack.reset();
  end.sequence = end.heard = 0;
}
void Stage::Act(End& end, const AwaitHello&) { end.awaits_hello = true; }
void Stage::Act(End& end, const Farewell&) { Say(end, "comes back to say farewell"); }
void Stage::Act(End& end, const Disconnect& action) {
  end.disconnect = action;
  Say(end, action.orderly
               ? std::string("takes the queue pair down")
               : std::string("aborts (") + ToString(action.cause) + "): " + action.reason);
}
void Stage::Act(End& end, const ReportClosed& action) {
  Say(end, std::string("is closed (") + ToString(action.cause) + ")" +
               (*action.reason != '\0' ? std::string(": ") + action.reason : ""));
}
void Stage::Act(End& end, const PostReceive& action) { end.posted.push_back(action.buffer); }
void Stage::Act(End& end, const PrepareReceives& action) {
  Say(end, "makes receive buffers of " + Text(action.bytes) + " bytes");
  to_prepare_ = true;
}
void Stage::Act(End&, const RetireReceive&) {}

void Stage::Act(End& end, const sdp::Send& action) {
  uint32_t payload = action.copied_bytes;
  for (uint32_t i = 0; i < action.gather_count; ++i) payload += action.gather[i].length;
  std::string line = "sends " + TextOf(action.message, payload);
  if (action.invalidate_key) line += ", invalidates key " + Text(*action.invalidate_key);
  Say(end, line);
  end.work.emplace_back(action);
}
void Stage::Act(End& end, const Read& action) {
  Say(end, "reads " + Text(action.source) + " into " + Text(action.target));
  end.work.emplace_back(action);
}
void Stage::Act(End& end, const Write& action) {
  Say(end, "writes " + Text(action.source) + " to " + Text(action.target));
  end.work.emplace_back(action);
}
void Stage::Act(End& end, const Expose& action) {
  end.exposures[action.advert] = {{}, action.range, action.right, true};
  to_expose_ = action.advert;
}
void Stage::Act(End& end, const Withdraw& action) {
  Say(end,
      "withdraws " + Text(action.advert) + (action.already_invalidated ? ", its key is dead" : ""));
  end.withdrawing.push_back(action.advert);
}
void Stage::Act(End& end, const FinishOperation& action) {
  std::string line = "finishes " + Text(action.operation) + " (" + ToString(action.outcome) + ")";
  if (action.bytes > 0) {
    line += ": " + Text(action.bytes) + " bytes at " + Text(action.stream_offset);
    if (action.bytes_zero_copy > 0) line += ", " + Text(action.bytes_zero_copy) + " by RDMA";
  }
  if (action.urgent) line += ", urgent";
  if (action.end_of_stream) line += ", end of stream";
  Say(end, line);
}
void Stage::Act(End& end, const SetTimer& action) { end.timers[action.timer] = action.at; }
void Stage::Act(End& end, const ClearTimer& action) { end.timers.erase(action.timer); }

// --- what the fabric does ---

void Stage::Settle() {
  for (int events = 0; HappenAt(a_, b_) || HappenAt(b_, a_);) {
    if (++events > 10'000) throw std::runtime_error("no end of events");
  }
}

// One thing, if any can happen at this end.
bool Stage::HappenAt(End& end, End& peer) {
  if (end.lost) return end.awaits_hello && SetUp(end, peer);
  return SetUp(end, peer) || BeginWork(end, peer) || Finish(end, peer) || Deliver(end, peer) ||
         FinishRead(end, peer) || Lose(end, peer);
}

bool Stage::SetUp(End& end, End& peer) {
  const bool awaits = end.queue_pair == 0 && peer.queue_pair == 0
                          ? !end.config.connecting && !end.hello_ack
                          : end.awaits_hello && peer.queue_pair > end.queue_pair;
  if (awaits && peer.hello) {
    end.awaits_hello = false;
    Feed(end, HelloArrived{*peer.hello});
    return true;
  }
  if (end.established || end.queue_pair != peer.queue_pair) return false;
  if (!end.hello_ack && !peer.hello_ack) return false;
  end.established = true;
  Established established;
  if (end.hello) established.hello_ack = peer.hello_ack;
  established.reads_out_max = end.reads;
  established.reads_in_max = peer.reads;
  Feed(end, established);
  return true;
}

bool Stage::Reaches(End& peer, uint32_t key, uint64_t address, uint32_t length, Right right) const {
  for (const auto& [advert, exposure] : peer.exposures) {
    if (!exposure.live || exposure.remote.key != key || exposure.right != right) continue;
    return address >= exposure.remote.address &&
           address + length <= exposure.remote.address + exposure.range.length;
  }
  return false;
}

bool Stage::BeginWork(End& end, End& peer) {
  if (end.work.empty() || end.hold_work || !end.established) return false;
  const Work work = end.work.front();
  end.work.pop_front();
  if (const auto* read = std::get_if<Read>(&work)) {
    end.reading.push_back(*read);
  } else if (const auto* write = std::get_if<Write>(&work)) {
    if (!Reaches(peer, write->target.key, write->target.address, write->source.length,
                 Right::kRemoteWrite)) {
      throw std::runtime_error(end.name + " writes what is not exposed");
    }
    ++end.writes_unfinished;
  } else {
    const auto& send = std::get<sdp::Send>(work);
    uint32_t payload = send.copied_bytes;
    for (uint32_t i = 0; i < send.gather_count; ++i) payload += send.gather[i].length;
    end.outgoing.push_back({send.message, payload, send.invalidate_key, end.queue_pair});
    end.sequence = send.message.base.sequence;
    ++end.sends_unfinished;
  }
  return true;
}

bool Stage::Finish(End& end, End&) {
  if (end.sends_unfinished > 0) {
    --end.sends_unfinished;
    Feed(end, SendFinished{});
  } else if (end.writes_unfinished > 0) {
    --end.writes_unfinished;
    Feed(end, WriteFinished{});
  } else if (!end.withdrawing.empty() && !end.hold_withdrawn) {
    const AdvertId advert = end.withdrawing.front();
    end.withdrawing.pop_front();
    end.exposures.at(advert).live = false;
    Feed(end, Withdrawn{advert});
  } else {
    for (const auto& [timer, at] : end.timers) {
      if (at > now_) continue;
      const Timer due = timer;
      end.timers.erase(due);
      Feed(end, TimerFired{due});
      return true;
    }
    return false;
  }
  return true;
}

// A message of this queue pair's is on its way to `end`.
bool Stage::HasFlight(const End& peer, const End& end) const {
  return !peer.outgoing.empty() && peer.outgoing.front().queue_pair == end.queue_pair;
}

bool Stage::Deliver(End& end, End& peer) {
  if (!HasFlight(peer, end) || peer.hold_messages) return false;
  if (!end.established && end.hello) return false;
  DeliverOne(end, peer);
  return true;
}

void Stage::DeliverOne(End& end, End& peer) {
  const Flight flight = peer.outgoing.front();
  end.heard = flight.message.base.sequence;
  peer.outgoing.pop_front();
  if (end.posted.empty()) throw std::runtime_error(end.name + " has no receive buffer left");
  MessageArrived arrived;
  arrived.message = flight.message;
  arrived.buffer = end.posted.front();
  arrived.payload_offset = wire::kHeaderBytesMax;
  arrived.payload_length = flight.payload;
  arrived.invalidated_key = flight.invalidate;
  end.posted.pop_front();
  for (auto& [advert, exposure] : end.exposures) {
    if (flight.invalidate && exposure.remote.key == *flight.invalidate) exposure.live = false;
  }
  // Through bytes and back, as it comes off a wire.
  const size_t header = wire::HeaderBytes(wire::IdOf(flight.message));
  std::vector<std::byte> bytes(header + flight.payload);
  wire::Encode(flight.message, flight.payload, bytes);
  if (const auto error = wire::Decode(bytes, arrived.message)) {
    Say(end, std::string("cannot read this: ") + error->field + " " + error->reason);
    Feed(end, MessageRefused{error->reason});
    return;
  }
  Feed(end, arrived);
}

bool Stage::FinishRead(End& end, End& peer) {
  if (end.reading.empty() || end.hold_reads || peer.lost) return false;
  const Read read = end.reading.front();
  end.reading.pop_front();
  if (!Reaches(peer, read.source.key, read.source.address, read.target.length,
               Right::kRemoteRead)) {
    throw std::runtime_error(end.name + " reads what is not exposed");
  }
  Feed(end, ReadFinished{});
  return true;
}

bool Stage::Lose(End& end, End& peer) {
  const bool own =
      end.disconnect && (!end.disconnect->orderly || (end.work.empty() && !end.hold_work));
  const bool ended =
      peer.queue_pair == end.queue_pair ? peer.lost : peer.queue_pair > end.queue_pair;
  const bool told = ended && !HasFlight(peer, end);
  if (!own && !told) return false;
  end.lost = true;
  if (end.disconnect && !end.disconnect->orderly) end.outgoing.clear();
  end.work.clear();
  end.reading.clear();
  end.withdrawing.clear();
  end.posted.clear();
  end.timers.clear();
  for (auto& [advert, exposure] : end.exposures) {
    if (exposure.live) Say(end, "lets go of " + Text(advert));
    exposure.live = false;
  }
  Feed(end, ConnectionLost{.clean = true});
  return true;
}

}  // namespace esdp::sdp::scenarios
