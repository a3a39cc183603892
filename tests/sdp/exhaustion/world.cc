#include "tests/sdp/exhaustion/world.h"

#include <algorithm>

#include "impl/sdp/wire/codec.h"
#include "impl/sdp/wire/text.h"

namespace esdp::sdp::exhaustion {
namespace {

// Two sides that hold unread bytes tell each other of buffers for ever, ever more slowly: what they
// have not done by this time they will not do.
constexpr Time kPatience = Time{} + std::chrono::milliseconds(300);

bool Fires(Timer timer, Time at) { return timer != Timer::kAcknowledge || at <= kPatience; }

}  // namespace

World::World(const Scenario& scenario)
    : scenario_(&scenario), ends_{End(scenario.config_a), End(scenario.config_b)} {
  Connect();
}

void World::Connect() {
  for (uint8_t i = 0; i < 2; ++i) {
    End& end = ends_[i];
    const Config& own = *end.config;
    const Config& other = *ends_[1 - i].config;
    end.watch.Start(own.receive_buffers, other.receive_buffers);
    end.peer_max_adverts = other.max_adverts;
    end.next_ask.resize(application(i).threads.size());
    for (const Thread& thread : application(static_cast<uint8_t>(1 - i)).threads) {
      for (const Ask& ask : thread) {
        if (ask.urgent) end.peer_urgent[ask.number] = ask.length;
      }
    }
  }
  ends_[1].acknowledges_early = scenario_->acknowledges_early;
  End& a = ends_[0];
  End& b = ends_[1];
  a.Feed(AskConnect{}, now_);
  b.Feed(HelloArrived{*a.hello}, now_);
  Established established;
  established.reads_out_max = established.reads_in_max = scenario_->reads_max;
  b.Feed(established, now_);
  established.hello_ack = b.hello_ack;
  a.Feed(established, now_);
  a.connecting = false;
  Settle();
  if (!a.connected || !b.connected) a.Wrong("no connection");
}

// --- what can happen ---

void World::Possible(std::vector<Happening>& possible) const {
  possible.clear();
  for (uint8_t i = 0; i < 2; ++i) {
    if (!ends_[i].to_answer) continue;  // the very next input is the answer
    possible.push_back({i, What::kExposed, 0});
    possible.push_back({i, What::kExposeFailed, 0});
    return;
  }
  for (uint8_t i = 0; i < 2; ++i) {
    if (!ends_[i].to_prepare) continue;
    possible.push_back({i, What::kPrepared, 0});
    possible.push_back({i, What::kPrepareFailed, 0});
    return;
  }
  for (uint8_t i = 0; i < 2; ++i) {
    CollectAsks(i, possible);
    CollectWork(i, possible);
  }
  CollectTimers(possible);
}

bool World::MayMake(const End& end, const Thread& thread, size_t next) const {
  if (next == thread.size()) return false;
  return !thread[next].after_ended || end.ended(thread[next - 1].number);
}

void World::CollectAsks(uint8_t end, std::vector<Happening>& possible) const {
  const std::vector<Thread>& threads = application(end).threads;
  for (size_t i = 0; i < threads.size(); ++i) {
    if (MayMake(ends_[end], threads[i], ends_[end].next_ask[i])) {
      possible.push_back({end, What::kAsk, static_cast<uint8_t>(i)});
    }
  }
}

void World::CollectWork(uint8_t index, std::vector<Happening>& possible) const {
  const End& end = ends_[index];
  const End& peer = ends_[1 - index];
  const auto add = [&](What what) { possible.push_back({index, what, 0}); };
  if (MayResume(end, peer)) add(What::kResume);
  if (end.lost || end.connecting) return;
  const bool met = peer.queue_pair == end.queue_pair;
  if (!peer.outgoing.empty() && peer.outgoing.front().queue_pair == end.queue_pair) {
    add(What::kDeliver);
  }
  if (!end.unfinished.empty()) add(What::kFinishSend);
  if (!end.reading.empty() && met && !peer.lost) add(What::kFinishRead);
  if (!end.writing.empty()) add(What::kFinishWrite);
  for (const Exposure& exposure : end.exposures) {
    if (!exposure.withdrawing) continue;
    add(What::kWithdrawn);
    break;
  }
  if (MayEnd(end, peer)) add(What::kLose);
}

// A connection ends when one side ends it; what was sent in order arrives before that.
bool World::MayEnd(const End& end, const End& peer) const {
  if (end.disconnect && (!end.disconnect->orderly || end.unfinished.empty())) return true;
  const bool gone = peer.lost || peer.queue_pair > end.queue_pair;
  return gone && (peer.outgoing.empty() || peer.outgoing.front().queue_pair > end.queue_pair);
}

// The one that was asked connects anew; the one that has asked is waiting for it.
bool World::MayResume(const End& end, const End& peer) const {
  return end.connecting && end.hello && peer.awaits_hello;
}

void World::CollectTimers(std::vector<Happening>& possible) const {
  const bool idle = possible.empty();
  Time limit = now_;
  if (scenario_->timers_race) {
    limit = kTimeInfinite;
  } else if (idle) {
    limit = kTimeInfinite;
    for (const End& end : ends_) {
      if (end.lost) continue;
      for (const auto& [timer, at] : end.timers) {
        if (Fires(timer, at)) limit = std::min(limit, std::max(at, now_));
      }
    }
  }
  for (uint8_t i = 0; i < 2; ++i) {
    if (ends_[i].lost) continue;
    for (const auto& [timer, at] : ends_[i].timers) {
      if (at <= limit && Fires(timer, at))
        possible.push_back({i, What::kTimer, static_cast<uint8_t>(timer)});
    }
  }
}

// --- what happens ---

void World::Do(const Happening& happening, std::string* log) {
  if (log != nullptr) *log += Describe(happening);
  for (End& end : ends_) end.log = log;
  End& end = ends_[happening.end];
  End& peer = ends_[1 - happening.end];
  switch (happening.what) {
    case What::kAsk: {
      size_t& next = end.next_ask[happening.which];
      end.Make(application(happening.end).threads[happening.which][next++], now_);
      break;
    }
    case What::kDeliver:
      Deliver(end, peer);
      break;
    case What::kFinishSend:
      end.FinishSend(now_);
      break;
    case What::kFinishRead:
      FinishRead(end, peer);
      break;
    case What::kFinishWrite:
      FinishWrite(end);
      break;
    case What::kWithdrawn:
      FinishWithdrawal(end);
      break;
    case What::kExposed:
    case What::kExposeFailed:
      Answer(end, happening.what == What::kExposed);
      break;
    case What::kPrepared:
    case What::kPrepareFailed:
      AnswerPrepare(end, happening.what == What::kPrepared);
      break;
    case What::kResume:
      Resume(end, peer);
      break;
    case What::kTimer:
      FireTimer(end, happening.which);
      break;
    case What::kLose: {
      const Disconnect& cause = end.disconnect ? *end.disconnect : *peer.disconnect;
      end.Lose(cause.orderly, now_);
      break;
    }
  }
  Settle();
  for (End& each : ends_) each.log = nullptr;
}

void World::AnswerPrepare(End& end, bool done) {
  end.to_prepare.reset();
  end.Feed(ReceivesPrepared{done}, now_);
}

void World::Resume(End& end, End& peer) {
  end.connecting = peer.awaits_hello = false;
  peer.outgoing.clear();  // news of credits for a queue pair that is gone
  peer.Feed(HelloArrived{*end.hello}, now_);
  if (!peer.hello_ack) return peer.Wrong("the suspended connection is not taken up again");
  const uint16_t own = end.hello->base.buffers;
  const uint16_t others = peer.hello_ack->base.buffers;
  end.watch.Start(own, others);
  peer.watch.Start(others, own);
  end.watch.Saw(Mark::kResumed);
  Established established;
  established.reads_out_max = established.reads_in_max = scenario_->reads_max;
  peer.Feed(established, now_);
  established.hello_ack = peer.hello_ack;
  end.Feed(established, now_);
}

void World::Settle() {
  for (End& end : ends_) {
    for (;;) {
      if (end.to_answer) {
        if (scenario_->expose_may_fail) break;
        Answer(end, true);
      } else if (end.to_prepare && !scenario_->prepare_may_fail) {
        AnswerPrepare(end, true);
      } else if (!end.unfinished.empty() && !scenario_->sends_finish_late) {
        end.FinishSend(now_);
      } else {
        break;
      }
    }
  }
}

void World::Answer(End& end, bool exposed) {
  const AdvertId advert = *end.to_answer;
  end.to_answer.reset();
  Exposure& exposure = end.exposures.back();
  if (!exposed) {
    end.exposures.pop_back();
    end.watch.Saw(Mark::kExposeFailed);
    return end.Feed(ExposeFailed{advert}, now_);
  }
  exposure.live = true;
  ++end.Find(exposure.range.operation)->exposures;
  end.Feed(Exposed{advert, {exposure.key, kWindowAddress + exposure.range.offset}}, now_);
}

Parcel World::TakeParcel(const End& end, End& peer) {
  Parcel parcel = peer.outgoing.front();
  peer.outgoing.erase(peer.outgoing.begin());
  if (scenario_->fault == Fault::kPromisesTooMuch && &end == &ends_[0]) {
    parcel.message.base.buffers = static_cast<uint16_t>(parcel.message.base.buffers + 3);
  }
  if (scenario_->fault == Fault::kLosesSendSm &&
      std::holds_alternative<wire::SendSm>(parcel.message.body)) {
    parcel.message.body = wire::Data{};
  }
  if (scenario_->fault == Fault::kLosesSuspCommAck &&
      std::holds_alternative<wire::SuspCommAck>(parcel.message.body)) {
    parcel.message.body = wire::Data{};
  }
  if (scenario_->fault == Fault::kLosesOobPresent) {
    parcel.message.base.flags &= static_cast<uint8_t>(~wire::kFlagOobPresent);
  }
  return parcel;
}

void World::Deliver(End& end, End& peer) {
  const Parcel parcel = TakeParcel(end, peer);
  const auto length = static_cast<uint32_t>(parcel.payload.size());
  if (parcel.write) {
    char* to = end.Reach(parcel.write->target, length, Right::kRemoteWrite);
    if (to != nullptr) parcel.payload.copy(to, length);
    return;
  }
  if (end.posted.empty()) return end.Wrong("credits are overdrawn: no receive is posted");
  const uint16_t buffer = end.posted.front();
  end.posted.erase(end.posted.begin());
  end.receive_memory[buffer] = parcel.payload;
  const size_t bytes = wire::HeaderBytes(wire::IdOf(parcel.message)) + length;
  if (bytes > end.receive_bytes[buffer]) return end.Wrong("a message larger than its buffer");
  if (parcel.invalidate) {
    if (Exposure* exposure = end.FindKey(*parcel.invalidate)) {
      exposure->live = false;
    } else {
      peer.Wrong("a Send invalidates what is not exposed");
    }
  }
  const uint8_t flags = parcel.message.base.flags;
  const bool announced = end.watch.urgent_announced() || (flags & wire::kFlagOobPending) != 0;
  if ((flags & wire::kFlagOobPresent) != 0 && !announced) {
    return end.Wrong("an urgent byte whose announcement is lost");
  }
  end.watch.OnDelivered(parcel.message, length, end.reading.size());
  const bool fills = std::holds_alternative<wire::RdmaWrCompl>(parcel.message.body);
  if (fills && parcel.invalidate) end.watch.Saw(Mark::kWriteInvalidates);
  MessageArrived arrived{parcel.message, ReceiveBuffer{buffer}, 0, length, parcel.invalidate};
  end.Feed(arrived, now_);
  if (end.core.counters().stale_adverts > 0) end.watch.Saw(Mark::kStaleAdvert);
  if (end.core.counters().source_adverts_lost > 0) end.watch.Saw(Mark::kSinkOverrode);
  if (const auto* answer = std::get_if<wire::ChRcvBufAck>(&parcel.message.body)) {
    const bool same = answer->actual_size == peer.config->receive_buffer_bytes;
    end.watch.Saw(same ? Mark::kResizeRefused : Mark::kGrew);
  }
}

void World::FinishRead(End& end, End& peer) {
  const Read read = end.reading.front();
  end.reading.erase(end.reading.begin());
  const uint32_t length = read.target.length;
  const char* from = peer.Reach(read.source, length, Right::kRemoteRead);
  char* to = end.At(read.target);
  if (from == nullptr || to == nullptr) return;
  std::copy_n(from, length, to);
  if (scenario_->fault == Fault::kChangesAByte) ++*to;
  --end.Find(read.target.operation)->reads;
  end.watch.OnReadFinished();
  end.Feed(ReadFinished{}, now_);
}

void World::FinishWrite(End& end) {
  const Write write = end.writing.front();
  end.writing.erase(end.writing.begin());
  --end.Find(write.source.operation)->writes;
  end.Feed(WriteFinished{}, now_);
}

void World::FinishWithdrawal(End& end) {
  const auto it = std::find_if(end.exposures.begin(), end.exposures.end(),
                               [](const Exposure& exposure) { return exposure.withdrawing; });
  const Exposure exposure = *it;
  end.exposures.erase(it);
  if (Operation* operation = end.Find(exposure.range.operation)) --operation->exposures;
  end.Feed(Withdrawn{exposure.advert}, now_);
}

void World::FireTimer(End& end, uint8_t which) {
  const auto it = std::find_if(end.timers.begin(), end.timers.end(), [which](const auto& timer) {
    return static_cast<uint8_t>(timer.first) == which;
  });
  const auto [timer, at] = *it;
  end.timers.erase(it);
  now_ = std::max(now_, at);
  end.Feed(TimerFired{timer}, now_);
}

// --- the whole ---

std::string World::wrong() const {
  for (size_t i = 0; i < 2; ++i) {
    if (!ends_[i].wrong.empty()) return (i == 0 ? "a: " : "b: ") + ends_[i].wrong;
  }
  return "";
}

Marks World::TakeMarks() { return ends_[0].watch.TakeMarks() | ends_[1].watch.TakeMarks(); }

uint64_t World::digest() const {
  Digest digest;
  digest.Add(static_cast<uint64_t>(now_.time_since_epoch().count()));
  for (const End& end : ends_) end.AddTo(digest);
  return digest.value();
}

}  // namespace esdp::sdp::exhaustion
