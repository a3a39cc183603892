#include "tests/sdp/exhaustion/scenario.h"

namespace esdp::sdp::exhaustion {
namespace {

// Few and small buffers, so that every rule is reached with few bytes: 24 user bytes in a message.
Config SmallConfig(bool connecting) {
  Config config;
  config.connecting = connecting;
  config.receive_buffers = 6;
  config.receive_buffer_bytes = 40;
  config.send_buffers = 2;
  config.coalesce_max = 8;
  config.max_adverts = 1;
  config.remote_invalidate = true;
  return config;
}

Scenario Make(const char* name, Application a, Application b) {
  Scenario scenario;
  scenario.name = name;
  scenario.a = std::move(a);
  scenario.b = std::move(b);
  scenario.config_a = SmallConfig(true);
  scenario.config_b = SmallConfig(false);
  return scenario;
}

// Two ends that know all of the protocol: several adverts, and the modes that are wanted.
Scenario MakeFull(const char* name, Application a, Application b) {
  Scenario scenario = Make(name, std::move(a), std::move(b));
  scenario.config_a.max_adverts = scenario.config_b.max_adverts = 4;
  scenario.sends_finish_late = false;
  scenario.all_must_end = false;
  return scenario;
}

// At least so many states and ends, and these outcomes among them.
void Expect(Scenario& scenario, uint64_t states, uint64_t ends, Marks must_reach) {
  scenario.states_min = states;
  scenario.ends_min = ends;
  scenario.must_reach = must_reach;
}

// --- the table ---

void AddCopying(std::vector<Scenario>& all) {
  Scenario it = Make("Copying", {{{Send(0, 6), Send(1, 20)}, {Receive(4, 9), Receive(5, 9)}}},
                     {{{Send(0, 9), Send(1, 3)}, {Receive(4, 10), Receive(5, 16)}}});
  it.all_must_end = false;
  Expect(it, 70000, 400, 0);
  all.push_back(it);

  it = Make("OneWayFlood", {{{Send(0, 60), Delivered(Send(1, 50))}}},
            {{{All(Receive(4, 90)), Receive(5, 20)}}});
  it.timers_race = true;
  Expect(it, 80000, 100, 0);
  all.push_back(it);

  it = Make("CancelUnsent",
            {{{DirectSend(0, 12), Send(1, 20), Cancel(1)}, {Receive(4, 9), Cancel(4)}}},
            {{{Send(0, 9)}, {DirectReceive(4, 8), Cancel(4), Receive(5, 40)}}});
  it.all_must_end = false;
  Expect(it, 80000, 250, MarksOf(Mark::kCancelledUnsent));
  all.push_back(it);
}

void AddSourceAdverts(std::vector<Scenario>& all) {
  Scenario it = Make("SrcAvail", {{{DirectSend(0, 20), Send(1, 6), DirectSend(2, 9)}}},
                     {{{DirectReceive(4, 9), DirectReceive(5, 11)}, {Receive(6, 15)}}});
  it.expose_may_fail = true;
  it.all_must_end = false;
  Expect(it, 5000, 37,
         MarksOf(Mark::kReadWhole, Mark::kReadInParts, Mark::kSendSmPlain, Mark::kSendSmAfterPart,
                 Mark::kExposeFailed));
  all.push_back(it);

  it = Make("SrcAvailBothWays",
            {{{DirectSend(0, 12), Send(1, 4)}, {DirectReceive(4, 6), DirectReceive(5, 20)}}},
            {{{DirectSend(0, 12), Send(1, 4)}, {DirectReceive(4, 6), DirectReceive(5, 20)}}});
  it.sends_finish_late = false;
  it.all_must_end = false;
  Expect(
      it, 400000, 11000,
      MarksOf(Mark::kReadWhole, Mark::kReadInParts, Mark::kAdvertsCrossed, Mark::kBlockedBothWays));
  it.large = true;
  all.push_back(it);

  it = Make("BlockedBothWays", {{{DirectSend(0, 12), Then(DirectReceive(4, 12))}}},
            {{{DirectSend(0, 12), Then(DirectReceive(4, 12))}}});
  Expect(it, 900, 10,
         MarksOf(Mark::kAdvertsCrossed, Mark::kBlockedBothWays, Mark::kUnreadCancelled));
  all.push_back(it);
}

void AddCancels(std::vector<Scenario>& all) {
  Scenario it = Make("SrcAvailCancel", {{{DirectSend(0, 16), Cancel(0), Send(1, 3)}}},
                     {{{DirectReceive(4, 6), DirectReceive(5, 20)}, {Receive(6, 4)}}});
  it.all_must_end = false;
  Expect(it, 7000, 36,
         MarksOf(Mark::kReadWhole, Mark::kReadInParts, Mark::kFinalReadCrossedCancel,
                 Mark::kSendSmCrossedCancel, Mark::kPartReadThenCancelled, Mark::kUnreadCancelled,
                 Mark::kAcknowledgementHeld));
  all.push_back(it);

  it = MakeFull(
      "ManySrcAvailsCancel",
      {{{Want(ModeWish::kPipelined), DirectSend(0, 8), DirectSend(1, 8), Send(2, 3)}, {Cancel(1)}}},
      {{{DirectReceive(4, 8), DirectReceive(5, 16)}}});
  Expect(it, 850, 9,
         MarksOf(Mark::kCancelledUnsent, Mark::kFinalReadCrossedCancel, Mark::kFirstReadRestRevoked,
                 Mark::kUnreadCancelled, Mark::kAcknowledgementHeld));
  all.push_back(it);

  it = Make("SrcAvailCancelDeployed", {{{DirectSend(0, 16), Cancel(0), Send(1, 3)}}},
            {{{DirectReceive(4, 6), DirectReceive(5, 20)}}});
  it.acknowledges_early = true;
  it.all_must_end = false;
  Expect(
      it, 2000, 12,
      MarksOf(Mark::kFinalReadCrossedCancel, Mark::kPartReadThenCancelled, Mark::kUnreadCancelled));
  all.push_back(it);
}

void AddSinkAdverts(std::vector<Scenario>& all) {
  Scenario it =
      MakeFull("SinkAvail", {{{Want(ModeWish::kPipelined), DirectSend(0, 60), Send(1, 5)}}},
               {{{DirectReceive(4, 50), DirectReceive(5, 44)}, {Send(0, 4)}}});
  Expect(it, 13000, 180,
         MarksOf(Mark::kWritten, Mark::kWrittenShort, Mark::kWriteInvalidates,
                 Mark::kPayloadTookAdvert, Mark::kStaleAdvert, Mark::kSinkOverrode,
                 Mark::kSrcAvailIgnored));
  all.push_back(it);

  it = MakeFull("SinkAvailCancel", {{{Want(ModeWish::kPipelined), DirectSend(0, 50), Send(1, 5)}}},
                {{{DirectReceive(4, 44), DirectReceive(5, 44)}, {Cancel(5), Cancel(4)}}});
  Expect(it, 15000, 100,
         MarksOf(Mark::kWritten, Mark::kSinkCancelAnswered, Mark::kWriteCrossedSinkCancel,
                 Mark::kPayloadCrossedSinkCancel, Mark::kStaleAdvert));
  all.push_back(it);

  it = MakeFull("SinkAvailCancelOfRest", {{{Want(ModeWish::kPipelined), DirectSend(0, 44)}}},
                {{{DirectReceive(4, 44), DirectReceive(5, 44), Cancel(5)}, {Send(0, 3)}}});
  it.sends_finish_late = true;
  Expect(it, 130000, 98, MarksOf(Mark::kSinkCancelOfRest));
  all.push_back(it);

  it = MakeFull("SinkAvailBothWays",
                {{{Want(ModeWish::kPipelined), DirectSend(0, 44)}, {DirectReceive(4, 44)}}},
                {{{Want(ModeWish::kPipelined), DirectSend(0, 44)}, {DirectReceive(4, 44)}}});
  Expect(it, 19000, 180,
         MarksOf(Mark::kWritten, Mark::kAdvertsCrossed, Mark::kSinkOverrode, Mark::kSrcAvailIgnored,
                 Mark::kPayloadTookAdvert, Mark::kStaleAdvert));
  all.push_back(it);

  it = MakeFull("LeavePipelined",
                {{{Want(ModeWish::kPipelined), DirectSend(0, 44), Want(ModeWish::kCombined),
                   DirectSend(1, 10)}}},
                {{{DirectReceive(4, 44), DirectReceive(5, 44)}}});
  Expect(it, 1700, 13,
         MarksOf(Mark::kLeftPipelined, Mark::kLeftPipelinedShown, Mark::kSinkOverrode,
                 Mark::kWritten));
  all.push_back(it);

  it = MakeFull("CloseWithSinkAvail", {{{Want(ModeWish::kPipelined), Send(0, 5), Shutdown(20)}}},
                {{{DirectReceive(4, 44), DirectReceive(5, 44)}, {Cancel(5)}}});
  Expect(it, 730, 29,
         MarksOf(Mark::kSinkCancelAnswered, Mark::kPayloadTookAdvert,
                 Mark::kPayloadCrossedSinkCancel, Mark::kClosedClean));
  all.push_back(it);
}

void AddEnds(std::vector<Scenario>& all) {
  Scenario it = Make("CloseWithSrcAvail",
                     {{{DirectSend(0, 12), Shutdown(20)}, {Receive(4, 12), Receive(5, 12)}}},
                     {{{Send(0, 5), Shutdown(20)}, {DirectReceive(4, 8), Receive(5, 12)}}});
  it.sends_finish_late = false;
  it.all_must_end = false;
  Expect(it, 23000, 490,
         MarksOf(Mark::kSendSmAfterPart, Mark::kClosedClean, Mark::kDisConnCrossed));
  all.push_back(it);

  it = Make("AbortWithSrcAvail", {{{DirectSend(0, 12)}, {Receive(4, 12)}, {Abort(21)}}},
            {{{DirectSend(0, 12)}, {DirectReceive(4, 12)}}});
  it.all_must_end = false;
  it.sends_finish_late = false;
  Expect(it, 9000, 1500, MarksOf(Mark::kReadWhole, Mark::kAborted));
  all.push_back(it);
}

}  // namespace

std::vector<Scenario> AllScenarios() {
  std::vector<Scenario> all;
  AddCopying(all);
  AddSourceAdverts(all);
  AddCancels(all);
  AddSinkAdverts(all);
  AddEnds(all);
  return all;
}

}  // namespace esdp::sdp::exhaustion
