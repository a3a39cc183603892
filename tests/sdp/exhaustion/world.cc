#include "tests/sdp/exhaustion/world.h"

#include <algorithm>

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
  if (end.lost) return;
  const auto add = [&](What what) { possible.push_back({index, what, 0}); };
  if (!peer.outgoing.empty()) add(What::kDeliver);
  if (!end.unfinished.empty()) add(What::kFinishSend);
  if (!end.reading.empty() && !peer.lost) add(What::kFinishRead);
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
  return peer.lost && peer.outgoing.empty();
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

void World::Settle() {
  for (End& end : ends_) {
    for (;;) {
      if (end.to_answer) {
        if (scenario_->expose_may_fail) break;
        Answer(end, true);
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
  if (parcel.invalidate) {
    if (Exposure* exposure = end.FindKey(*parcel.invalidate)) {
      exposure->live = false;
    } else {
      peer.Wrong("a Send invalidates what is not exposed");
    }
  }
  end.watch.OnDelivered(parcel.message, length, end.reading.size());
  const bool fills = std::holds_alternative<wire::RdmaWrCompl>(parcel.message.body);
  if (fills && parcel.invalidate) end.watch.Saw(Mark::kWriteInvalidates);
  MessageArrived arrived{parcel.message, ReceiveBuffer{buffer}, 0, length, parcel.invalidate};
  end.Feed(arrived, now_);
  if (end.core.counters().stale_adverts > 0) end.watch.Saw(Mark::kStaleAdvert);
  if (end.core.counters().source_adverts_lost > 0) end.watch.Saw(Mark::kSinkOverrode);
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
