#include "tests/provider/shard_pair.h"

#include <algorithm>
#include <cstdio>
#include <thread>

#include "gtest/gtest.h"
#include "impl/fabric/qpip/qpip_fabric.h"
#include "impl/fabric/sim/sim_fabric.h"
#include "impl/provider/regions.h"
#include "tests/base/content.h"

namespace esdp::provider {

using Lock = std::lock_guard<std::mutex>;

// --- Recorder ------------------------------------------------------------------------------------

namespace {

// Such an end of a transfer is the end of its connection.
bool IsOfPeerOrFabric(EndReason ending) {
  switch (ending) {
    case EndReason::kPeerReset:
    case EndReason::kPeerSilent:
    case EndReason::kPeerProtocol:
    case EndReason::kRemoteAccess:
    case EndReason::kFabricFailed:
      return true;
    default:
      return false;
  }
}

}  // namespace

void Recorder::OnIncoming(ListenerId, ConnectionId connection, const Address&, const Address&,
                          uint8_t fabric) {
  const Lock lock(mutex_);
  fabrics_.push_back(fabric);
  incoming_.push_back(connection);
}

void Recorder::OnConnected(ConnectionId connection, const Address&, const Address&,
                           uint8_t fabric) {
  const Lock lock(mutex_);
  fabrics_.push_back(fabric);
  connected_.push_back(connection);
}

void Recorder::OnFailed(ConnectionId connection, const Failure&) {
  const Lock lock(mutex_);
  failed_.push_back(connection);
}

void Recorder::OnTransferFinished(ConnectionId connection, Transfer& transfer,
                                  const TransferResult& result) {
  if (IsOfPeerOrFabric(result.ending)) {
    const Lock lock(mutex_);
    EXPECT_TRUE(std::ranges::find(failed_, connection) != failed_.end())
        << "whoever hears of this may post once more";
  }
  if (quiet) {
    ++quiet_finished;
  } else {
    const Lock lock(mutex_);
    finished_.push_back(
        {connection, &transfer, result, result.failure == nullptr ? "" : result.failure->text});
    finished_.back().result.failure = nullptr;
  }
  if (on_finished) on_finished(transfer);
}

void Recorder::OnImmediateSent(ImmediateSend& send) {
  const Lock lock(mutex_);
  sent_.push_back(send);
}

void Recorder::OnShutDown(ConnectionId connection, const Failure& failure) {
  const Lock lock(mutex_);
  shut_down_.push_back({connection, failure});
}

void Recorder::OnClosed(ConnectionId connection, const Failure& cause, uint64_t) {
  const Lock lock(mutex_);
  closed_.push_back({connection, cause});
}

void Recorder::OnResumed(ConnectionId connection, const Failure& failure) {
  const Lock lock(mutex_);
  resumed_.push_back({connection, failure});
}

void Recorder::OnReadiness(ConnectionId connection, const Readiness& readiness) {
  const Lock lock(mutex_);
  readiness_[connection] = readiness;
}

std::optional<Readiness> Recorder::readiness(ConnectionId connection) const {
  const Lock lock(mutex_);
  const auto found = readiness_.find(connection);
  return found == readiness_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<ConnectionId> Recorder::incoming() const {
  const Lock lock(mutex_);
  return incoming_;
}
std::vector<ConnectionId> Recorder::connected() const {
  const Lock lock(mutex_);
  return connected_;
}
std::vector<uint8_t> Recorder::fabrics() const {
  const Lock lock(mutex_);
  return fabrics_;
}
std::vector<Recorder::Finished> Recorder::finished() const {
  const Lock lock(mutex_);
  return finished_;
}
void Recorder::OnRejected(Rejection reason) {
  const Lock lock(mutex_);
  ++rejected_[reason];
}

uint64_t Recorder::rejected(Rejection reason) const {
  const Lock lock(mutex_);
  const auto found = rejected_.find(reason);
  return found == rejected_.end() ? 0 : found->second;
}

std::vector<ImmediateSend> Recorder::sent() const {
  const Lock lock(mutex_);
  return sent_;
}
std::vector<Recorder::Ended> Recorder::shut_down() const {
  const Lock lock(mutex_);
  return shut_down_;
}
std::vector<Recorder::Ended> Recorder::closed() const {
  const Lock lock(mutex_);
  return closed_;
}

std::vector<Recorder::Ended> Recorder::resumed() const {
  const Lock lock(mutex_);
  return resumed_;
}

std::optional<Recorder::Finished> Recorder::Find(const Transfer& transfer) const {
  const Lock lock(mutex_);
  for (const Finished& one : finished_) {
    if (one.transfer == &transfer) return one;
  }
  return std::nullopt;
}

void Recorder::Forget() {
  const Lock lock(mutex_);
  finished_.clear();
  sent_.clear();
}

// --- ShardPair -----------------------------------------------------------------------------------

std::string NameOf(World world) {
  switch (world) {
    case World::kSim:
      return "Sim";
    case World::kQpipManual:
      return "QpipManual";
    case World::kQpipThread:
      return "QpipThread";
  }
  return "";
}

ShardPair::ShardPair(World world, WireTap* tap) : world_(world) {
  if (world == World::kSim) simulated_ = *fabric::sim::MakeWorld();
  for (Side* side : {&client_, &server_}) {
    ShardOptions options;
    options.progress = world == World::kQpipThread ? Progress::kThread : Progress::kManual;
    options.tap = tap != nullptr && side == &client_ ? tap : &side->trace;
    auto shard = Shard::Create(MakeFabric(), side->recorder, options);
    EXPECT_TRUE(shard.ok()) << shard.status();
    side->shard = *std::move(shard);
  }
}

ShardPair::~ShardPair() {
  client_.shard.reset();
  server_.shard.reset();
  if (!testing::Test::HasFailure()) return;
  std::printf("the client's last messages:\n%s", client_.trace.Text().c_str());
  std::printf("the server's last messages:\n%s", server_.trace.Text().c_str());
}

std::unique_ptr<fabric::Fabric> ShardPair::MakeFabric() {
  absl::StatusOr<std::unique_ptr<fabric::Fabric>> made =
      world_ == World::kSim ? fabric::sim::MakeSimFabric(simulated_)
                            : fabric::qpip::MakeQpipFabric();
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

// One of the two may have been destroyed by its test.
Shard& ShardPair::clock() { return client_.shard != nullptr ? *client_.shard : *server_.shard; }

bool ShardPair::PollBoth() {
  bool moved = false;
  for (Side* side : {&client_, &server_}) {
    if (side->shard != nullptr) moved |= side->shard->Poll();
  }
  return moved;
}

bool ShardPair::MoveOnce(Time deadline) {
  if (PollBoth()) return true;
  if (world_ == World::kSim) return clock().Advance(deadline);
  std::this_thread::sleep_for(std::chrono::microseconds(50));
  return true;
}

bool ShardPair::RunUntil(const std::function<bool()>& done, Duration most) {
  const Time deadline = clock().Now() + most;
  while (!done()) {
    if (clock().Now() >= deadline) {
      PollBoth();  // timers of ours that are due just now
      return done();
    }
    MoveOnce(deadline);
  }
  return true;
}

void ShardPair::RunFor(Duration time) {
  (void)RunUntil([] { return false; }, time);
}

Address ShardPair::Listen(const ConnectionOptions& options, int backlog) {
  const auto listener = server_.shard->Listen(Loopback(0), backlog, options);
  EXPECT_TRUE(listener.ok()) << listener.status();
  listener_ = *listener;
  address_ = *server_.shard->ListenerAddress(listener_);
  return *address_;
}

bool ShardPair::Connect(const ConnectionOptions& options) {
  if (!address_) Listen(options);
  const size_t connected = client_.recorder.connected().size();
  const size_t incoming = server_.recorder.incoming().size();
  const auto connection = client_.shard->Connect(Loopback(0), *address_, options,
                                                 client_.shard->Now() + std::chrono::seconds(5));
  EXPECT_TRUE(connection.ok()) << connection.status();
  const bool both = RunUntil([&] {
    return client_.recorder.connected().size() > connected &&
           server_.recorder.incoming().size() > incoming;
  });
  if (!both) return false;
  client_connection_ = client_.recorder.connected().back();
  server_connection_ = server_.recorder.incoming().back();
  EXPECT_EQ(client_connection_, *connection);
  return true;
}

// --- the rest ------------------------------------------------------------------------------------

Memory::Memory(Side& side, size_t bytes, Exposure exposure) : bytes_(bytes) {
  auto region = side.shard->Register(bytes_, true, exposure);
  EXPECT_TRUE(region.ok()) << region.status();
  region_ = *std::move(region);
}

void Memory::Fill(uint64_t seed) { FillByChance(seed, bytes_); }

Job::Job(Memory& memory, bool is_send, uint64_t offset, uint64_t length)
    : pieces{{&memory.region(), offset, length}} {
  transfer.is_send = is_send;
  transfer.pieces = pieces;
  transfer.zcopy_min = 64 * 1024;
}

void Submit(Side& side, ConnectionId connection, Job& job) {
  Request request;
  request.connection = connection;
  request.transfer = &job.transfer;
  side.shard->Submit(request);
}

void Submit(Side& side, ConnectionId connection, Request::Kind kind) {
  Request request;
  request.kind = kind;
  request.connection = connection;
  side.shard->Submit(request);
}

}  // namespace esdp::provider
