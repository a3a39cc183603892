#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "tests/sdp/action_digest.h"
#include "tests/sdp/pair.h"
#include "tests/sdp/reached.h"

// Whole conversations, everything about them drawn from a seed: sizes, thresholds, buffer counts,
// who sends, how it ends, and in which order things happen. ESDP_SEED=n repeats one of them,
// ESDP_CONVERSATIONS=n holds so many.

namespace esdp::sdp::testing {
namespace {

constexpr uint64_t kConversations = 1000;

struct Seeds {
  uint64_t first = 1;
  uint64_t count = kConversations;
};

Seeds SeedsFromEnvironment() {
  Seeds seeds;
  if (const char* text = std::getenv("ESDP_CONVERSATIONS"); text != nullptr) {
    seeds.count = std::strtoull(text, nullptr, 10);
  }
  if (const char* text = std::getenv("ESDP_SEED"); text != nullptr) {
    seeds = {std::strtoull(text, nullptr, 10), 1};
  }
  return seeds;
}

ModeWish DrawWish(Random& random) {
  const ModeWish wishes[] = {ModeWish::kAutomatic, ModeWish::kAutomatic, ModeWish::kAutomatic,
                             ModeWish::kPipelined, ModeWish::kPipelined, ModeWish::kPipelined,
                             ModeWish::kCombined,  ModeWish::kBuffered};
  return wishes[random.Below(8)];
}

Config DrawConfig(Random& random, bool connecting) {
  Config config = SmallConfig(connecting);
  const uint16_t counts[] = {3, 4, 5, 8, 16, 64};
  config.receive_buffers = counts[random.Below(6)];
  const uint32_t sizes[] = {37, 64, 100, 1040, 4112, 16400};
  config.receive_buffer_bytes = sizes[random.Below(6)];
  Random aside = random;  // what else is drawn stays as it was
  const bool in_groups = aside.Chance(1, 2);
  if (in_groups) config.receives_at_once = std::max<uint16_t>(config.receive_buffers / 4, 1);
  if (aside.Chance(1, 4)) config.receive_buffer_bytes_max = sizes[aside.Below(6)];
  if (aside.Chance(1, 4)) config.read_ahead_bytes = aside.Below(5000);
  if (aside.Chance(1, 4)) config.peer_receive_buffer_bytes = sizes[aside.Below(6)];
  if (aside.Chance(1, 3)) {
    config.receive_buffers_max = static_cast<uint16_t>(4 * config.receive_buffers);
    config.receive_window_bytes = ~uint64_t{0};
  }
  config.send_buffers = static_cast<uint16_t>(random.Between(1, 8));
  config.send_work_max = static_cast<uint32_t>(random.Between(6, 40));
  config.gather_max = static_cast<uint32_t>(random.Between(1, 5));
  config.read_bytes_max =
      random.Chance(1, 3) ? static_cast<uint32_t>(random.Between(1, 3000)) : 1u << 30;
  config.can_expose = !random.Chance(1, 8);
  config.remote_invalidate = random.Chance(1, 2);
  config.coalesce_max = static_cast<uint32_t>(random.Below(600));
  const uint8_t adverts[] = {1, 2, 3, 16};
  config.max_adverts = adverts[random.Below(4)];
  const ModeWish wishes[] = {ModeWish::kAutomatic, ModeWish::kAutomatic, ModeWish::kPipelined,
                             ModeWish::kCombined};
  config.mode_send = wishes[random.Below(4)];
  return config;
}

PairOptions DrawPair(Random& random) {
  PairOptions options;
  options.a = DrawConfig(random, true);
  options.b = DrawConfig(random, false);
  options.a.initiator_speaks_first = options.b.initiator_speaks_first = random.Chance(1, 3);
  options.reads_a = static_cast<uint32_t>(random.Below(4));
  options.reads_b = static_cast<uint32_t>(random.Below(4));
  if (random.Chance(1, 6)) options.expose_failure_percent = 30;
  return options;
}

uint32_t DrawLength(Random& random, uint32_t unit) {
  switch (random.Below(6)) {
    case 0:
      return static_cast<uint32_t>(random.Below(3));
    case 1:
      return static_cast<uint32_t>(random.Below(30));
    case 2:
      return static_cast<uint32_t>(random.Below(600));
    default:
      return static_cast<uint32_t>(random.Below(unit * 12));
  }
}

std::vector<uint32_t> DrawPieces(Random& random, uint32_t unit) {
  std::vector<uint32_t> pieces(random.Chance(1, 5) ? random.Between(2, 4) : 1);
  for (uint32_t& piece : pieces) piece = DrawLength(random, unit);
  return pieces;
}

Path DrawPath(Random& random) {
  const Path paths[] = {Path::kByThreshold, Path::kByThreshold, Path::kCopy, Path::kZeroCopy};
  return paths[random.Below(4)];
}

uint64_t DrawThreshold(Random& random) {
  const uint64_t thresholds[] = {0, 500, 4096, Config::kNever};
  return thresholds[random.Below(4)];
}

// The application of one side: sends a few operations, keeps receives posted, ends in some way.
class Application {
 public:
  Application(Side& side, Random& random, uint32_t unit)
      : side_(side), random_(random), unit_(unit), sends_left_(random.Below(12)) {
    may_cancel_ = random.Chance(1, 2);
    depth_ = random.Between(1, 4);
    slow_reader_ = random.Chance(1, 4);
  }

  // Does something, or nothing. False: it is through.
  bool Act() {
    if (side_.core().closed()) return false;
    if (may_cancel_ && !asked_.empty() && random_.Chance(1, 6)) {
      const size_t recent = std::min<size_t>(asked_.size(), 4);
      const OperationId operation = asked_[asked_.size() - 1 - random_.Below(recent)];
      side_.AskToCancel(operation,
                        random_.Chance(1, 3) ? CancelMode::kEndShort : CancelMode::kIfNotStarted);
    } else if (sends_left_ > 0 && random_.Chance(1, 3)) {
      Send();
    } else if (sends_left_ == 0 && !shut_ && random_.Chance(1, 4)) {
      side_.AskToShutdown();
      shut_ = true;
    } else if (!side_.saw_end_of_stream() && ReceivesPending() < depth_ &&
               (!slow_reader_ || random_.Chance(1, 10))) {
      Receive();
    } else if (random_.Chance(1, 12) && !closed_) {
      asked_.push_back(side_.AskToAwaitUrgent());
    } else if (asks_modes_ && random_.Chance(1, 20)) {
      side_.Feed(AskMode{DrawWish(random_), DrawWish(random_)});
    } else if (shut_ && side_.saw_end_of_stream() && !closed_) {
      side_.AskToClose(false);
      closed_ = true;
    }
    return !closed_;
  }

  void AskForModes() { asks_modes_ = true; }
  void Abort() {
    side_.AskToClose(true);
    closed_ = true;
  }
  void CloseNow() {
    side_.AskToClose(false);
    closed_ = true;
  }
  bool closed() const { return closed_; }

 private:
  void Send() {
    SendOptions options;
    options.pieces = DrawPieces(random_, unit_);
    options.exposable = !random_.Chance(1, 6);
    options.path = DrawPath(random_);
    options.complete_at = random_.Chance(1, 3) ? CompleteAt::kDelivered : CompleteAt::kReusable;
    options.zcopy_min = DrawThreshold(random_);
    options.urgent = random_.Chance(1, 4) && std::ranges::count(options.pieces, 0u) == 0;
    asked_.push_back(side_.AskToSend(options));
    --sends_left_;
  }

  void Receive() {
    ReceiveOptions options;
    options.pieces = DrawPieces(random_, unit_);
    options.wait_all = random_.Chance(1, 5);
    options.placeable = !random_.Chance(1, 6);
    options.shown = !random_.Chance(1, 6);
    options.until_advert = random_.Chance(1, 6);
    options.path = DrawPath(random_);
    options.zcopy_min = DrawThreshold(random_);
    receives_.push_back(side_.AskToReceive(options));
    asked_.push_back(receives_.back());
  }

  size_t ReceivesPending() {
    std::erase_if(receives_, [this](OperationId id) { return side_.finished(id); });
    return receives_.size();
  }

  Side& side_;
  Random& random_;
  uint32_t unit_;
  uint64_t sends_left_;
  uint64_t depth_ = 1;
  bool may_cancel_ = false;
  bool asks_modes_ = false;
  bool slow_reader_ = false;
  bool shut_ = false;
  bool closed_ = false;
  std::vector<OperationId> asked_;
  std::vector<OperationId> receives_;
};

uint32_t UnitOf(const PairOptions& options) {
  return std::min(options.a.receive_buffer_bytes, options.b.receive_buffer_bytes);
}

// Lets both applications and the fabric act until both are through and nothing moves.
void Converse(Pair& pair, Application& a, Application& b, Random& random, bool rests) {
  int idle = 0;
  for (int turn = 0; turn < 200'000 && idle < 200; ++turn) {
    bool moved = false;
    if (random.Chance(1, 3)) {
      const bool more_a = a.Act();
      const bool more_b = b.Act();
      moved = more_a || more_b;
      if (moved && rests) pair.Settle(Duration::zero());
    } else {
      moved = pair.Happen() || pair.LetTimePass();
    }
    idle = moved ? 0 : idle + 1;
  }
  pair.Settle();
}

void EndSomehow(Pair& pair, Application& a, Application& b, Random& random) {
  const uint64_t how = random.Below(4);
  if (how == 0) pair.Break(random.Chance(1, 2));
  if (how == 1 && !a.closed()) a.Abort();
  if (how >= 2 && !b.closed()) b.CloseNow();
  if (how == 3 && !a.closed()) a.CloseNow();
}

void CheckEndedInOrder(const Side& side) {
  for (const Action& action : side.history()) {
    const auto* end = std::get_if<Disconnect>(&action);
    if (end != nullptr) {
      EXPECT_TRUE(end->orderly) << end->reason;
    }
  }
}

// The bytes that arrived are the first of those sent, and all of them if `whole`.
void CheckStream(const Side& from, const Side& to, bool whole) {
  const std::vector<std::byte> sent = from.SentStream();
  const std::vector<std::byte>& received = to.received_stream();
  if (whole) {
    EXPECT_EQ(received.size(), sent.size());
  }
  ASSERT_LE(received.size(), sent.size());
  EXPECT_TRUE(std::equal(received.begin(), received.end(), sent.begin()));
  std::vector<uint64_t> urgent = from.SentUrgent();
  std::erase_if(urgent, [&](uint64_t place) { return place >= received.size(); });
  EXPECT_EQ(to.received_urgent(), urgent);
}

struct Manner {
  bool asks_for_modes = false;
  bool rests = true;  // what applications have asked for comes to rest before they ask for more
};

// A conversation that both hold to its end.
void HoldWhole(const PairOptions& options, uint64_t seed, Random& random, const Manner& manner,
               Reached& reached) {
  Pair pair(options, seed);
  pair.Connect();
  Application a(pair.a, random, UnitOf(options));
  Application b(pair.b, random, UnitOf(options));
  if (manner.asks_for_modes) {
    a.AskForModes();
    b.AskForModes();
  }

  Converse(pair, a, b, random, manner.rests);

  EXPECT_TRUE(pair.a.core().closed()) << ToString(pair.a.core().phase());
  EXPECT_TRUE(pair.b.core().closed()) << ToString(pair.b.core().phase());
  EXPECT_EQ(pair.a.pending() + pair.b.pending(), 0u) << "a stall";
  CheckEndedInOrder(pair.a);
  CheckEndedInOrder(pair.b);
  CheckStream(pair.a, pair.b, true);
  CheckStream(pair.b, pair.a, true);
  reached.Add(pair.a);
  reached.Add(pair.b);
}

class ConversationTest : public ::testing::Test {
 protected:
  template <typename Body>
  void ForEachSeed(Body body) {
    const Seeds seeds = SeedsFromEnvironment();
    std::printf("seeds %llu .. %llu\n", static_cast<unsigned long long>(seeds.first),
                static_cast<unsigned long long>(seeds.first + seeds.count - 1));
    for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
      SCOPED_TRACE("repeat with ESDP_SEED=" + std::to_string(seed));
      body(seed);
      if (HasFailure()) return;
    }
  }
};

// A slow reader is no failure here.
void BePatient(PairOptions& options) {
  for (Config* config : {&options.a, &options.b}) {
    config->linger = config->cancel_grace = kDurationInfinite;
  }
}

TEST_F(ConversationTest, EveryByteArrivesOnceAndInOrderAndBothSidesEndWithoutACause) {
  Reached reached;
  ForEachSeed([&reached](uint64_t seed) {
    Random random(seed);
    PairOptions options = DrawPair(random);
    BePatient(options);
    HoldWhole(options, seed, random, Manner{}, reached);
  });

  if (HasFailure() || SeedsFromEnvironment().count < kConversations) return;
  EXPECT_GT(reached.zero_copy, 0u);
  EXPECT_GT(reached.send_sm, 0u);
  EXPECT_GT(reached.expose_failures, 0u);
  EXPECT_GT(reached.stalls, 0u);
  EXPECT_GT(reached.updates, 0u);
  EXPECT_GT(reached.urgent, 0u);
  EXPECT_GT(reached.raised, 0u);
  EXPECT_GT(reached.refused, 0u);
  EXPECT_GT(reached.lowered, reached.raised);
  EXPECT_GT(reached.urgent_ahead, 0u);
  EXPECT_GT(reached.partial_reads, 0u);
  EXPECT_GT(reached.invalidates, 0u);
  EXPECT_GT(reached.withdrawn_by_peer, 0u);
  EXPECT_GT(reached.cancelled, 0u);
  EXPECT_GT(reached.mixed, 0u);
  EXPECT_GT(reached.sink_adverts, 0u);
  EXPECT_GT(reached.writes, 0u);
  EXPECT_GT(reached.stale, 0u);
  EXPECT_GT(reached.overridden, 0u);
  EXPECT_GT(reached.sink_cancels, 0u);
  EXPECT_GT(reached.sink_cancel_acks, 0u);
}

void WishForModes(Config& config, Random& random) {
  config.as_deployed = random.Chance(1, 10);
  config.mode_send = DrawWish(random);
  config.mode_receive = DrawWish(random);
}

// A small send with nothing before it passes the queue by. Nobody can tell from what follows.
TEST_F(ConversationTest, BothRoutesOfASmallSendGiveTheSameActions) {
  uint64_t immediate = 0;
  ForEachSeed([&immediate](uint64_t seed) {
    if (seed % 4 != 0 && SeedsFromEnvironment().count > 1) return;
    Random random(seed);
    PairOptions options = DrawPair(random);
    BePatient(options);
    options.a.coalesce_max = options.b.coalesce_max = 600;
    const auto hold = [&options, seed](Random random) {
      auto pair = std::make_unique<Pair>(options, seed);
      pair->Connect();
      Application a(pair->a, random, UnitOf(options));
      Application b(pair->b, random, UnitOf(options));
      Converse(*pair, a, b, random, true);
      return pair;
    };
    const auto with = hold(random);
    options.a.immediate_max = options.b.immediate_max = 0;
    const auto without = hold(random);

    EXPECT_EQ(without->a.immediate_sends() + without->b.immediate_sends(), 0u);
    EXPECT_EQ(testing::DigestsOf(with->a.history()), testing::DigestsOf(without->a.history()));
    EXPECT_EQ(testing::DigestsOf(with->b.history()), testing::DigestsOf(without->b.history()));
    immediate += with->a.immediate_sends() + with->b.immediate_sends();
  });
  if (HasFailure() || SeedsFromEnvironment().count < kConversations) return;
  EXPECT_GT(immediate, 50u);
}

TEST_F(ConversationTest, WhateverModesBothSidesWishForAndInWhateverOrderNoByteIsLost) {
  Reached reached;
  ForEachSeed([&reached](uint64_t seed) {
    if (seed % 2 != 0) return;
    Random random(seed);
    PairOptions options = DrawPair(random);
    BePatient(options);
    WishForModes(options.a, random);
    WishForModes(options.b, random);
    HoldWhole(options, seed, random, {.asks_for_modes = true}, reached);
  });

  if (HasFailure() || SeedsFromEnvironment().count < kConversations) return;
  EXPECT_GT(reached.many_adverts, 0u);
  EXPECT_GT(reached.cancels, 0u);
  EXPECT_GT(reached.revoked_whole, 0u);
  EXPECT_GT(reached.mode_changes, 0u);
  EXPECT_GT(reached.buffered, 0u);
}

// What is small waits for the message before it to leave, and goes with a receive that is shown.
TEST_F(ConversationTest, SmallBytesRideOnAdvertsOfTheReplysPlaceAndNoByteIsLost) {
  Reached reached;
  ForEachSeed([&reached](uint64_t seed) {
    if (seed % 4 != 0) return;
    Random random(seed);
    PairOptions options;
    options.a = SmallConfig(true);
    options.b = SmallConfig(false);
    for (Config* config : {&options.a, &options.b}) {
      config->max_adverts = 16;
      config->mode_send = ModeWish::kPipelined;
      config->linger = config->cancel_grace = kDurationInfinite;
    }
    HoldWhole(options, seed, random, {.rests = false}, reached);
  });

  if (HasFailure() || SeedsFromEnvironment().count < kConversations) return;
  EXPECT_GT(reached.transactions, 0u);
}

TEST_F(ConversationTest, AnEndAtAnyMomentFinishesEveryOperationAndKeepsThePrefix) {
  ForEachSeed([](uint64_t seed) {
    Random random(seed);
    const PairOptions options = DrawPair(random);
    Pair pair(options, seed);
    pair.Connect();
    Application a(pair.a, random, UnitOf(options));
    Application b(pair.b, random, UnitOf(options));

    for (uint64_t turns = random.Below(300); turns > 0; --turns) {
      if (random.Chance(1, 2) && !a.closed()) a.Act();
      if (random.Chance(1, 2) && !b.closed()) b.Act();
      pair.Happen();
    }
    EndSomehow(pair, a, b, random);
    pair.Settle();
    if (!b.closed()) b.Abort();
    if (!a.closed()) a.Abort();
    pair.Settle();

    EXPECT_TRUE(pair.a.core().closed()) << ToString(pair.a.core().phase());
    EXPECT_TRUE(pair.b.core().closed()) << ToString(pair.b.core().phase());
    EXPECT_EQ(pair.a.pending() + pair.b.pending(), 0u);
    CheckStream(pair.a, pair.b, false);
    CheckStream(pair.b, pair.a, false);
  });
}

}  // namespace
}  // namespace esdp::sdp::testing
