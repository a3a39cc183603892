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
  // Its timer would fire in each interleaving, long after all else has come to rest.
  scenario.config_a.cancel_grace = scenario.config_b.cancel_grace = kDurationInfinite;
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
  Expect(it, 14000, 98,
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

void AddModes(std::vector<Scenario>& all) {
  Scenario it = MakeFull("LeavePipelinedInCancels",
                         {{{Want(ModeWish::kPipelined), DirectSend(0, 44), DirectSend(1, 10)},
                           {Cancel(1), Want(ModeWish::kCombined)}}},
                         {{{DirectReceive(4, 44), DirectReceive(5, 44)}, {Cancel(5)}}});
  Expect(it, 79000, 473,
         MarksOf(Mark::kLeftPipelined, Mark::kLeftPipelinedShown, Mark::kLeftPipelinedInCancel,
                 Mark::kLeftPipelinedInSinkCancel, Mark::kSinkCancelAnswered));
  all.push_back(it);

  it = MakeFull("BufferedAndBack",
                {{{DirectSend(0, 20), Want(ModeWish::kBuffered), DirectSend(1, 10)}, {Cancel(0)}}},
                {{{DirectReceive(4, 12), DirectReceive(5, 30)}}});
  Expect(it, 1100, 53,
         MarksOf(Mark::kBuffered, Mark::kRaisedFromBuffered, Mark::kReadWhole, Mark::kReadInParts,
                 Mark::kUnreadCancelled));
  all.push_back(it);
}

void AddUrgent(std::vector<Scenario>& all) {
  Scenario it =
      MakeFull("Urgent", {{{Send(0, 60), Urgent(Send(1, 30)), Urgent(Send(2, 3))}, {Cancel(2)}}},
               {{{Receive(4, 24), All(Receive(5, 70))}, {AwaitUrgent(6)}}});
  Expect(it, 770, 24,
         MarksOf(Mark::kUrgentOvertook, Mark::kUrgentTold, Mark::kUrgentAhead,
                 Mark::kCancelledUnsent));
  all.push_back(it);

  it = MakeFull("UrgentAdvertised", {{{DirectSend(0, 12), Urgent(DirectSend(1, 14))}, {Cancel(1)}}},
                {{{DirectReceive(4, 12), DirectReceive(5, 40)}, {AwaitUrgent(6), AwaitUrgent(7)}}});
  Expect(it, 2900, 36,
         MarksOf(Mark::kUrgentOvertook, Mark::kUrgentOvertookAdvert, Mark::kUrgentTold,
                 Mark::kUrgentAhead, Mark::kReadWhole));
  all.push_back(it);
}

// Data of four buffers goes before another size is asked for, and a large buffer is not met before
// all small ones are used up: so these are as few and as small as may be.
void HaveSmallBuffers(Scenario& scenario) {
  for (Config* config : {&scenario.config_a, &scenario.config_b}) {
    config->receive_buffers = 3;
    config->receive_buffer_bytes = 37;
    config->receive_buffer_bytes_max = 64;
  }
}

void AddResizes(std::vector<Scenario>& all) {
  Scenario it =
      MakeFull("ReceiveBuffersGrow", {{{Send(0, 64), Send(1, 64), Send(2, 64)}, {Receive(4, 20)}}},
               {{{All(Receive(4, 192))}, {Send(0, 9)}}});
  HaveSmallBuffers(it);
  it.config_a.peer_receive_buffer_bytes = 56;
  it.prepare_may_fail = true;
  Expect(it, 53000, 1693, MarksOf(Mark::kGrew, Mark::kResizeRefused));
  all.push_back(it);

  it = MakeFull("BothAskForAnotherSize",
                {{{Send(0, 64), Send(1, 64), Send(2, 40), All(Receive(4, 168))}}},
                {{{Send(0, 64), Send(1, 64), Send(2, 40), All(Receive(4, 168))}}});
  HaveSmallBuffers(it);
  it.config_a.peer_receive_buffer_bytes = it.config_b.peer_receive_buffer_bytes = 56;
  Expect(it, 8200, 120, MarksOf(Mark::kGrew, Mark::kResizesCrossed));
  all.push_back(it);

  it =
      MakeFull("ReceiveBuffersGrowUnderSinkAvail",
               {{{Want(ModeWish::kPipelined), Send(0, 64), Send(1, 64), Send(2, 64)}}},
               {{{All(Receive(4, 147)), DirectReceive(5, 30), DirectReceive(6, 50)}, {Cancel(6)}}});
  HaveSmallBuffers(it);
  it.config_a.receive_buffers = it.config_b.receive_buffers = 5;
  it.config_a.peer_receive_buffer_bytes = 56;
  Expect(it, 4600, 164, MarksOf(Mark::kGrew, Mark::kResizeMetSink));
  all.push_back(it);
}

void AddSuspends(std::vector<Scenario>& all) {
  Scenario it = MakeFull("Suspend", {{{Send(0, 30), Send(1, 9)}, {Suspend(20)}}},
                         {{{Receive(4, 12), Receive(5, 40)}, {Send(0, 5)}}});
  Expect(it, 4200, 147, MarksOf(Mark::kResumed));
  all.push_back(it);

  it = MakeFull("SuspendBoth", {{{Send(0, 30)}, {Suspend(20)}}},
                {{{Receive(4, 12), All(Receive(5, 18))}, {Suspend(20)}}});
  Expect(it, 1700, 29, MarksOf(Mark::kResumed, Mark::kSuspendsCrossed));
  all.push_back(it);

  it = MakeFull("SuspendWithSrcAvail",
                {{{DirectSend(0, 20), Send(1, 5)}, {Suspend(20)}, {Cancel(0)}}},
                {{{DirectReceive(4, 8), DirectReceive(5, 40)}}});
  Expect(it, 5200, 120,
         MarksOf(Mark::kResumed, Mark::kSuspendedShown, Mark::kSuspendedPartRead,
                 Mark::kSuspendedInCancel, Mark::kReadInParts));
  all.push_back(it);

  it = MakeFull("SuspendWithSinkAvail",
                {{{Want(ModeWish::kPipelined), DirectSend(0, 50)}, {Suspend(20)}}},
                {{{DirectReceive(4, 44), DirectReceive(5, 44)}, {Cancel(5)}}});
  Expect(it, 12700, 95, MarksOf(Mark::kResumed, Mark::kSuspendMetSink, Mark::kWritten));
  all.push_back(it);

  it = MakeFull("SinkSuspends", {{{Want(ModeWish::kPipelined), DirectSend(0, 50)}}},
                {{{DirectReceive(4, 44), DirectReceive(5, 44)}, {Suspend(20)}}});
  Expect(it, 4300, 42, MarksOf(Mark::kResumed, Mark::kSuspendedSink, Mark::kWritten));
  all.push_back(it);

  it = MakeFull("SuspendAndShut", {{{Send(0, 9), Shutdown(21)}, {Suspend(20)}}},
                {{{Receive(4, 12)}, {Send(0, 5), Shutdown(21)}}});
  Expect(it, 5600, 201, MarksOf(Mark::kResumed));
  all.push_back(it);
}

// Two of these at once, with cancels among them.
void AddMixtures(std::vector<Scenario>& all) {
  Scenario it =
      MakeFull("UrgentAndSuspend",
               {{{DirectSend(0, 12), Urgent(DirectSend(1, 14))}, {Suspend(20)}, {Cancel(1)}}},
               {{{DirectReceive(4, 8), DirectReceive(5, 40)}, {AwaitUrgent(6)}}});
  Expect(it, 31000, 270,
         MarksOf(Mark::kResumed, Mark::kUrgentOvertook, Mark::kUrgentTold, Mark::kUrgentAhead,
                 Mark::kSuspendedShown));
  all.push_back(it);

  it = MakeFull("UrgentAskedWhileSuspending",
                {{{Send(0, 21), Suspend(20)}, {Urgent(Send(1, 9))}, {Receive(4, 40)}}},
                {{{Send(0, 21), Send(1, 5)}, {Receive(5, 21), Receive(6, 9)}}});
  HaveSmallBuffers(it);
  Expect(it, 250000, 2123, MarksOf(Mark::kResumed));
  all.push_back(it);

  it = MakeFull("BothCancelsInARead",
                {{{Want(ModeWish::kPipelined), DirectReceive(4, 12), DirectSend(0, 20)}}},
                {{{DirectSend(0, 12), DirectReceive(4, 44)},
                  {Cancel(0), Cancel(4)},
                  {DirectReceive(5, 30)}}});
  Expect(it, 45000, 442, MarksOf(Mark::kAcknowledgementHeld, Mark::kSinkCancelAnswered));
  all.push_back(it);

  it = MakeFull("BothCancelWithFewBuffers", {{{DirectReceive(4, 9), DirectSend(0, 12), Cancel(0)}}},
                {{{DirectReceive(4, 9), DirectSend(0, 12), Cancel(0)}}});
  HaveSmallBuffers(it);
  Expect(it, 8600, 97, MarksOf(Mark::kAcknowledgementHeld, Mark::kAdvertsCrossed));
  all.push_back(it);

  it = MakeFull("UrgentAndSinkAvail",
                {{{Want(ModeWish::kPipelined), DirectSend(0, 30), Urgent(Send(1, 12))}}},
                {{{DirectReceive(4, 44), DirectReceive(5, 44)}, {Cancel(5)}, {AwaitUrgent(6)}}});
  Expect(it, 18000, 123,
         MarksOf(Mark::kUrgentTold, Mark::kUrgentAhead, Mark::kWrittenShort,
                 Mark::kSinkCancelAnswered));
  all.push_back(it);

  it = MakeFull("ResizeAndSuspend", {{{Send(0, 64), Send(1, 64), Send(2, 40)}, {Suspend(20)}}},
                {{{All(Receive(4, 168))}}});
  HaveSmallBuffers(it);
  it.config_a.peer_receive_buffer_bytes = 56;
  Expect(it, 3400, 86, MarksOf(Mark::kResumed, Mark::kGrew));
  all.push_back(it);

  it = MakeFull("ModeChangeAndSuspend",
                {{{Want(ModeWish::kPipelined), DirectSend(0, 44), Want(ModeWish::kCombined)},
                  {Suspend(20)},
                  {Cancel(0)}}},
                {{{DirectReceive(4, 20), DirectReceive(5, 44)}}});
  Expect(it, 10000, 168,
         MarksOf(Mark::kResumed, Mark::kLeftPipelined, Mark::kLeftPipelinedShown,
                 Mark::kSuspendedShown, Mark::kSuspendedInCancel));
  all.push_back(it);

  it = MakeFull("SuspendBothWithAdverts", {{{DirectSend(0, 20)}, {Suspend(20)}}},
                {{{DirectSend(0, 12)}, {DirectReceive(4, 8)}, {Suspend(20)}}});
  Expect(it, 34000, 1060,
         MarksOf(Mark::kResumed, Mark::kSuspendsCrossed, Mark::kSuspendedShown,
                 Mark::kSuspendedPartRead, Mark::kAdvertsCrossed));
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
  AddModes(all);
  AddUrgent(all);
  AddResizes(all);
  AddSuspends(all);
  AddMixtures(all);
  return all;
}

std::vector<Scenario> LargeScenarios() {
  std::vector<Scenario> all;
  Scenario it =
      Make("SrcAvailBothWays",
           {{{DirectSend(0, 12), Send(1, 4)}, {DirectReceive(4, 6), DirectReceive(5, 20)}}},
           {{{DirectSend(0, 12), Send(1, 4)}, {DirectReceive(4, 6), DirectReceive(5, 20)}}});
  it.sends_finish_late = false;
  it.all_must_end = false;
  Expect(
      it, 400000, 11000,
      MarksOf(Mark::kReadWhole, Mark::kReadInParts, Mark::kAdvertsCrossed, Mark::kBlockedBothWays));
  all.push_back(it);

  it = MakeFull("SuspendBothWithAdvertsRead",
                {{{DirectSend(0, 20)}, {DirectReceive(4, 8), DirectReceive(5, 20)}, {Suspend(20)}}},
                {{{DirectSend(0, 12)}, {DirectReceive(4, 20)}, {Suspend(20)}}});
  Expect(it, 1100000, 25000,
         MarksOf(Mark::kResumed, Mark::kSuspendsCrossed, Mark::kSuspendedShown,
                 Mark::kSuspendedPartRead, Mark::kAdvertsCrossed));
  all.push_back(it);
  return all;
}

}  // namespace esdp::sdp::exhaustion
