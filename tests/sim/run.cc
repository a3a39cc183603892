#include "tests/sim/run.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "impl/base/check.h"
#include "impl/base/digest.h"
#include "impl/fabric/sim/world.h"
#include "tests/sim/checkers/memory_checker.h"
#include "tests/sim/link.h"
#include "tests/sim/party.h"
#include "tests/sim/wires.h"

namespace esdp::simulation {
namespace {

using fabric::sim::FaultKind;
using fabric::sim::World;
using std::chrono::milliseconds;
using std::chrono::seconds;

// How long connections may take to their end once nothing goes wrong any more; and how long, at
// the most, those that something has happened to.
constexpr Duration kPatience = seconds(15);
constexpr Duration kPatienceWithTheDisturbed = seconds(200);
constexpr Duration kSettle = milliseconds(200);

// While it is there, a check of the library's that fails is a finding. One at a time.
class CheckWatch {
 public:
  explicit CheckWatch(Findings& findings) {
    findings_ = &findings;
    before_ = SetCheckHook([](const CheckFailure& failure) {
      findings_->Add(std::string("a check failed: ") + failure.expression + " at " + failure.file +
                     ":" + std::to_string(failure.line));
    });
  }
  ~CheckWatch() { (void)SetCheckHook(before_); }
  CheckWatch(const CheckWatch&) = delete;
  CheckWatch& operator=(const CheckWatch&) = delete;

 private:
  static inline Findings* findings_ = nullptr;
  CheckHook before_;
};

class Runner {
 public:
  Runner(const Plan& plan, ArenaPool& arenas, const Sabotage& sabotage, Outcome& outcome)
      : plan_(plan),
        sabotage_(sabotage),
        outcome_(outcome),
        random_(plan.seed ^ 0x5eed),
        world_(*fabric::sim::MakeWorld({.seed = plan.seed, .transit_max = plan.transit_max})),
        memory_(outcome.findings),
        checker_(outcome.findings, outcome.marks),
        hostile_(plan.seed ^ 0xbad, plan.hostile, outcome.marks,
                 [this](uint16_t port) { OnLie(FaultKind::kHostile, port); }),
        forger_(plan.seed ^ 0xf01, plan.forged, outcome.marks,
                [this](uint16_t port) { OnLie(FaultKind::kForged, port); }),
        wires_(checker_, memory_, hostile_, forger_, sabotage.wire) {
    wires_.disturbed = [this](uint16_t port, FaultKind kind) {
      LinkOf(port).disturbed = true;
      LinkOf(port).died |= kind == FaultKind::kDeath;
    };
    world_->SetObserver(&wires_);
    for (size_t i = 0; i < plan.stations.size(); ++i) {
      stations_.push_back(
          std::make_unique<Station>(outcome.findings, "station " + std::to_string(i), arenas));
    }
  }

  void Play();

 private:
  bool Open();
  void StartConnections();
  void StopFaults();
  bool RunUntil(const std::function<bool()>& done, Time deadline);
  void Collect();
  void OnEvent(Station& station, Party* party, const Event& event);
  void OnAccepted(Station& station, const Event& event);
  void OnConnected(Party& party);
  void MoveAll();
  void Finish();
  void FindStalled(bool all);
  bool IsTidy() const;
  void FindLeaks();
  Time NextMove() const;
  bool AllDone() const;
  Link& LinkOf(uint16_t port);
  void OnLie(FaultKind kind, uint16_t port);
  void Die();
  void TidyUpBehindTheDead();
  bool IsDead(const Party& party) const { return &party.station() == dead_; }

  const Plan& plan_;
  const Sabotage& sabotage_;
  Outcome& outcome_;
  Random random_;
  std::shared_ptr<World> world_;
  MemoryChecker memory_;
  WireChecker checker_;
  HostilePeer hostile_;
  Forger forger_;
  Wires wires_;
  Digest events_;
  std::vector<std::unique_ptr<Station>> stations_;
  std::map<uint16_t, std::unique_ptr<Link>> links_;
  std::vector<std::unique_ptr<Party>> parties_;
  bool finishing_ = false;
  Time dies_at_ = kTimeInfinite;
  const Station* dead_ = nullptr;  // its process: nothing of it runs
};

// A connection that has moved to another queue pair is still the same one.
Link& Runner::LinkOf(uint16_t port) {
  auto& link = links_[checker_.FirstOf(port)];
  if (link == nullptr) link = std::make_unique<Link>(outcome_.findings, port);
  return *link;
}

void Runner::OnLie(FaultKind kind, uint16_t port) {
  world_->NoteFault(kind, port);
  checker_.Disregard(port);
  LinkOf(port).hostile = true;
}

bool Runner::Open() {
  for (size_t i = 0; i < stations_.size(); ++i) {
    const absl::Status opened =
        stations_[i]->Open(world_, plan_.stations[i], plan_.SocketOf(i), memory_);
    if (!opened.ok()) {
      outcome_.findings.Add("a station cannot be opened: " + opened.ToString());
      return false;
    }
    const absl::StatusOr<OpId> accept =
        stations_[i]->listener.Accept(0, {.queue = stations_[i]->queue});
    if (!accept.ok()) {
      outcome_.findings.Add("Accept is refused: " + accept.status().ToString());
      return false;
    }
    stations_[i]->completions.OnPosted(
        *accept, {.type = EventType::kAccept, .socket = stations_[i]->listener.id()});
  }
  return true;
}

void Runner::StartConnections() {
  for (uint32_t i = 0; i < plan_.connections; ++i) {
    const size_t from = random_.Below(stations_.size());
    const size_t to = (from + random_.Between(1, stations_.size() - 1)) % stations_.size();
    Station& station = *stations_[from];
    absl::StatusOr<Socket> socket =
        station.context.CreateSocket(Family::kIpv4, SocketType::kStream, plan_.SocketOf(from));
    if (!socket.ok()) {
      outcome_.findings.Add("no socket: " + socket.status().ToString());
      continue;
    }
    const Surroundings around{plan_, outcome_.findings, outcome_.marks, memory_};
    auto party = std::make_unique<Party>(around, station, *std::move(socket), 0, random_.Next());
    const Address address = Address::Loopback(Family::kIpv4, stations_[to]->address().port());
    if (party->Connect(address)) parties_.push_back(std::move(party));
  }
}

// --- events --------------------------------------------------------------------------------------

void Runner::Collect() {
  for (const auto& station : stations_) {
    if (station.get() == dead_) continue;
    for (const Event& event : station->TakeEvents()) OnEvent(*station, nullptr, event);
  }
  for (size_t i = 0; i < parties_.size(); ++i) {
    Party& party = *parties_[i];
    if (IsDead(party)) continue;
    for (const Event& event : party.TakeEvents()) {
      if (!sabotage_.events) {
        OnEvent(party.station(), &party, event);
        continue;
      }
      for (const Event& other : sabotage_.events(event)) OnEvent(party.station(), &party, other);
    }
  }
}

void Runner::OnEvent(Station& station, Party* party, const Event& event) {
  events_.Add(static_cast<uint64_t>(world_->Now().time_since_epoch().count()))
      .Add(static_cast<uint64_t>(event.type))
      .Add(static_cast<uint64_t>(event.op))
      .Add(static_cast<uint64_t>(event.kind))
      .Add(event.flags)
      .Add(event.bytes)
      .Add(event.stream_offset);
  station.completions.OnEvent(event);
  if (party == nullptr) {
    if (event.ok() && event.accepted != SocketId::kNone && !finishing_) OnAccepted(station, event);
    return;
  }
  party->OnEvent(event, world_->Now());
  if (event.type == EventType::kConnect && event.ok() && !party->done()) OnConnected(*party);
}

void Runner::OnConnected(Party& party) {
  ++outcome_.lives;
  for (size_t i = 0; i < stations_.size(); ++i) {
    const bool is_here = stations_[i].get() == &party.station();
    if (is_here && plan_.stations[i].short_limits) outcome_.marks.Hit("a device with short limits");
  }
  party.Begin(LinkOf(party.local_port()), world_->Now());
}

void Runner::OnAccepted(Station& station, const Event& event) {
  absl::StatusOr<Socket> socket = station.context.TakeAccepted(event.accepted);
  if (!socket.ok()) {
    outcome_.findings.Add("an accepted connection cannot be taken: " + socket.status().ToString());
    return;
  }
  const Surroundings around{plan_, outcome_.findings, outcome_.marks, memory_};
  parties_.push_back(
      std::make_unique<Party>(around, station, *std::move(socket), 1, random_.Next()));
  parties_.back()->Begin(LinkOf(event.accepted_peer.port()), world_->Now());
}

// --- time ----------------------------------------------------------------------------------------

Time Runner::NextMove() const {
  Time next = kTimeInfinite;
  for (const auto& party : parties_) {
    if (!IsDead(*party)) next = std::min(next, party->next());
  }
  return std::min(next, dies_at_);
}

void Runner::MoveAll() {
  for (size_t i = 0; i < parties_.size(); ++i) {
    if (IsDead(*parties_[i]) || parties_[i]->next() > world_->Now()) continue;
    parties_[i]->Move(world_->Now());
  }
}

bool Runner::AllDone() const {
  return std::all_of(parties_.begin(), parties_.end(),
                     [this](const auto& party) { return party->done() || IsDead(*party); });
}

bool Runner::RunUntil(const std::function<bool()>& done, Time deadline) {
  for (;;) {
    Collect();
    MoveAll();
    if (world_->Now() >= dies_at_) Die();
    if (done()) return true;
    const Time next = std::min(NextMove(), deadline);
    if (!world_->Step(next) && world_->Now() >= deadline) {
      Collect();
      return done();
    }
  }
}

void Runner::StopFaults() {
  world_->SetFaults({});
  hostile_.Stop();
  forger_.Stop();
  dies_at_ = kTimeInfinite;
}

// --- death ---------------------------------------------------------------------------------------

// Its applications stop where they are; who was connected with them is excused, and nobody else.
void Runner::Die() {
  dies_at_ = kTimeInfinite;
  dead_ = stations_[0].get();
  for (const auto& party : parties_) {  // on their way to another queue pair they may have none
    if (!IsDead(*party) || party->done() || party->link() == nullptr) continue;
    party->link()->disturbed = party->link()->died = true;
  }
  world_->Kill(0, plan_.death_is_told);
}

// What is left of it in the test's own process.
void Runner::TidyUpBehindTheDead() {
  if (dead_ == nullptr) return;
  const Station* station = std::exchange(dead_, nullptr);
  world_->Revive();
  for (const auto& party : parties_) {
    if (&party->station() == station) party->Abort();
  }
  const auto all_done = [this] { return AllDone(); };
  if (!RunUntil(all_done, world_->Now() + kPatienceWithTheDisturbed)) FindStalled(true);
}

void Runner::FindStalled(bool all) {
  for (const auto& party : parties_) {
    if (party->done() || IsDead(*party)) continue;
    // Who was connecting with the dead hears of it, or finds out by its keep-alive.
    const bool excused = party->link() == nullptr ? dead_ != nullptr : party->link()->excused();
    if (all || !excused) outcome_.findings.Add("stalled: " + party->Describe());
  }
}

void Runner::Play() {
  if (!Open()) return;
  world_->SetFaults(plan_.faults);
  StartConnections();
  if (plan_.death_after > Duration::zero()) dies_at_ = world_->Now() + plan_.death_after;
  const auto all_done = [this] { return AllDone(); };
  if (!RunUntil(all_done, world_->Now() + plan_.faults_last)) {
    StopFaults();
    if (!RunUntil(all_done, world_->Now() + kPatience)) FindStalled(false);
    for (const auto& party : parties_) {
      if (!IsDead(*party)) party->Abort();
    }
    if (!RunUntil(all_done, world_->Now() + kPatienceWithTheDisturbed)) FindStalled(true);
  }
  StopFaults();
  TidyUpBehindTheDead();
  Finish();
}

void Runner::Finish() {
  finishing_ = true;
  for (const auto& station : stations_) station->listener = {};
  // The accepting side of a connection that fell silent too early is known to nobody, and lasts
  // until its keep-alive finds out.
  (void)RunUntil([] { return false; }, world_->Now() + kSettle);
  (void)RunUntil([this] { return IsTidy(); }, world_->Now() + kPatienceWithTheDisturbed);
  FindLeaks();
  const bool dies = world_->fault_counts()[static_cast<size_t>(FaultKind::kDeath)] > 0;
  for (const auto& [port, link] : links_) {
    if (dies && link->whole()) outcome_.marks.Hit("a connection that outlives another's death");
    if (link->hostile) continue;
    for (StreamChecker& stream : link->streams) stream.Finish(link->whole());
  }
  parties_.clear();
  for (const auto& station : stations_) {
    station->completions.Finish();
    station->Close();
  }
  world_->SetObserver(nullptr);
  outcome_.digest = Digest().Add(events_.value()).Add(world_->history().digest()).value();
  outcome_.messages = checker_.messages();
  outcome_.touches = memory_.touches();
  outcome_.faults = world_->fault_counts();
  if (!outcome_.findings.empty()) outcome_.history = world_->history().Tail();
  stations_.clear();
}

bool Runner::IsTidy() const {
  const fabric::sim::Inventory left = world_->Count();
  size_t own = 0;
  for (const auto& station : stations_) own += station->Registrations();
  return left.queue_pairs + left.listeners + left.windows == 0 && left.regions <= own;
}

void Runner::FindLeaks() {
  if (IsTidy()) return;
  const fabric::sim::Inventory left = world_->Count();
  outcome_.findings.Add("left over in the fabrics: " + std::to_string(left.queue_pairs) +
                        " queue pairs, " + std::to_string(left.listeners) + " listeners, " +
                        std::to_string(left.regions) + " regions, " + std::to_string(left.windows) +
                        " windows");
}

}  // namespace

Outcome Play(const Plan& plan, ArenaPool& arenas, const Sabotage& sabotage) {
  Outcome outcome;
  const CheckWatch watch(outcome.findings);
  Runner(plan, arenas, sabotage, outcome).Play();
  return outcome;
}

}  // namespace esdp::simulation
