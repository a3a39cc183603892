#include <gtest/gtest.h>

#include <vector>

#include "impl/base/check.h"
#include "impl/base/random.h"
#include "tests/sdp/pair.h"
#include "tests/sdp/solo.h"

// A peer that says anything at any time. The core answers as the tables say, or ends the connection
// with a reason; it never breaks an invariant of its own.

namespace esdp::sdp::testing {
namespace {

int g_failed_checks = 0;

class HostileTest : public ::testing::Test {
 protected:
  HostileTest() {
    g_failed_checks = 0;
    before_ = SetCheckHook([](const CheckFailure& failure) {
      ++g_failed_checks;
      ADD_FAILURE() << failure.file << ":" << failure.line << ": " << failure.expression;
    });
  }
  ~HostileTest() override { SetCheckHook(before_); }
  CheckHook before_;
};

std::vector<wire::Body> EveryBody() {
  std::vector<wire::Body> bodies = {
      wire::Data{},
      wire::SendSm{},
      wire::SrcAvailCancel{},
      wire::SinkAvailCancel{},
      wire::SinkCancelAck{},
      wire::SuspCommAck{},
      wire::DisConn{},
      wire::AbortConn{},
      wire::SuspComm{0x11389},
      wire::Hello{},
      wire::HelloAck{},
  };
  for (const uint32_t value : {0u, 1u, 2u, 36u, 37u, 63u, 64u, 9999u, 10000u, 1u << 31, ~0u}) {
    bodies.push_back(wire::RdmaRdCompl{value});
    bodies.push_back(wire::RdmaWrCompl{value});
    bodies.push_back(wire::ChRcvBuf{value});
    bodies.push_back(wire::ChRcvBufAck{value});
    for (const uint64_t address : {uint64_t{0}, uint64_t{1} << 63, ~uint64_t{0}}) {
      bodies.push_back(wire::SrcAvail{value, value, address});
      bodies.push_back(wire::SinkAvail{value, value, address, value});
    }
  }
  for (const wire::Mode mode :
       {wire::Mode::kBuffered, wire::Mode::kCombined, wire::Mode::kPipelined}) {
    bodies.push_back(wire::ModeChange{false, mode});
    bodies.push_back(wire::ModeChange{true, mode});
  }
  return bodies;
}

// Every situation in which a message may arrive.
struct Situation {
  const char* name;
  void (*enter)(Solo&);
};

AskSend Large() {
  AskSend traits;
  traits.exposable = true;
  traits.zcopy_min = 4096;
  return traits;
}
AskReceive Placeable() {
  AskReceive traits;
  traits.placeable = true;
  return traits;
}

const Situation kSituations[] = {
    {"idle", [](Solo&) {}},
    {"Hello sent", [](Solo& solo) { solo.Step(AskConnect{}); }},
    {"established", [](Solo& solo) { solo.Establish(); }},
    {"unread data",
     [](Solo& solo) {
       solo.Establish();
       solo.Arrive(wire::Data{}, 100);
     }},
    {"our advert outstanding",
     [](Solo& solo) {
       solo.Establish();
       solo.Send(10000, Large());
     }},
    {"the peer's advert held",
     [](Solo& solo) {
       solo.Establish();
       solo.Arrive(wire::SrcAvail{10000, 7, 0}, 1);
     }},
    {"a read running",
     [](Solo& solo) {
       solo.Establish();
       solo.Receive(20000, Placeable());
       solo.Arrive(wire::SrcAvail{10000, 7, 0}, 1);
     }},
    {"a read running and cancelled",
     [](Solo& solo) {
       solo.Establish();
       solo.Receive(5000, Placeable());
       solo.Arrive(wire::SrcAvail{10000, 7, 0}, 1);
       solo.Arrive(wire::SrcAvailCancel{});
     }},
    {"a remainder expected",
     [](Solo& solo) {
       solo.Establish();
       solo.Receive(5000);
       solo.Arrive(wire::SrcAvail{10000, 7, 0}, 1);
     }},
    {"half closed",
     [](Solo& solo) {
       solo.Establish();
       solo.Step(AskShutdown{OperationId{90}});
       solo.FinishSends();
     }},
    {"closing",
     [](Solo& solo) {
       solo.Establish();
       solo.Step(AskClose{OperationId{91}, false});
     }},
    {"shut by the peer",
     [](Solo& solo) {
       solo.Establish();
       solo.Arrive(wire::DisConn{});
     }},
    {"both shut, second closer",
     [](Solo& solo) {
       solo.Establish();
       solo.Arrive(wire::DisConn{});
       solo.Step(AskClose{OperationId{91}, false});
     }},
    {"both shut, first closer",
     [](Solo& solo) {
       solo.Establish();
       solo.Step(AskShutdown{OperationId{90}});
       solo.Arrive(wire::DisConn{});
     }},
    {"aborting",
     [](Solo& solo) {
       solo.Establish();
       solo.Step(MessageRefused{"garbage"});
     }},
    {"lost",
     [](Solo& solo) {
       solo.Establish();
       solo.Step(ConnectionLost{});
     }},
};

// After anything at all the connection either goes on or ends once, with a cause and a reason, and
// every operation ends when the queue pair is gone.
void CheckSane(Solo& solo) {
  const auto ends = Solo::Of<Disconnect>(solo.all());
  EXPECT_LE(ends.size(), 1u);
  for (const Disconnect& end : ends) {
    if (end.orderly) continue;
    EXPECT_NE(end.cause, Outcome::kDone);
    EXPECT_NE(end.cause, Outcome::kInternal) << end.reason;
    EXPECT_STRNE(end.reason, "");
  }
  solo.Step(AskClose{OperationId{99}, true});
  if (!solo.core().closed()) solo.Step(ConnectionLost{});
  EXPECT_TRUE(solo.core().closed());
  EXPECT_EQ(Solo::Of<ReportClosed>(solo.all()).size(), 1u);
}

// R17.1, R17.2
TEST_F(HostileTest, EveryMessageInEverySituationIsAnsweredOrEndsTheConnectionWithAReason) {
  for (const Situation& situation : kSituations) {
    for (const wire::Body& body : EveryBody()) {
      for (const uint32_t payload : {0u, 1u, 64u, 1000u}) {
        SCOPED_TRACE(std::string(situation.name) + ", body " + std::to_string(body.index()) + ", " +
                     std::to_string(payload) + " bytes");
        Solo solo(SmallConfig(true));
        situation.enter(solo);

        solo.Arrive(body, payload);
        solo.Arrive(body, payload);

        CheckSane(solo);
        if (HasFailure()) return;
      }
    }
  }
}

TEST_F(HostileTest, EveryHeaderValueInEverySituationIsTakenOrEndsTheConnectionWithAReason) {
  for (const Situation& situation : kSituations) {
    for (const uint32_t sequence : {0u, 1u, 2u, 0x7fffffffu, 0x80000000u, ~0u}) {
      for (const uint32_t acknowledged : {0u, 1u, 5u, 0x7fffffffu, 0x80000000u, ~0u}) {
        for (const uint16_t buffers : {uint16_t{0}, uint16_t{1}, uint16_t{0xffff}}) {
          SCOPED_TRACE(situation.name);
          Solo solo(SmallConfig(true));
          situation.enter(solo);
          MessageArrived arrived = solo.Next(wire::Data{});
          arrived.message.base.sequence += sequence;
          arrived.message.base.acknowledged = acknowledged;
          arrived.message.base.buffers = buffers;
          arrived.message.base.flags = 0xff;

          solo.Step(arrived);

          CheckSane(solo);
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST_F(HostileTest, AnInvalidateInAnySituationIsTakenOrEndsTheConnection) {
  for (const Situation& situation : kSituations) {
    for (const wire::Body& body : EveryBody()) {
      for (const uint32_t key : {0u, 7u, 0x500u}) {
        SCOPED_TRACE(situation.name);
        Solo solo(SmallConfig(true));
        situation.enter(solo);
        MessageArrived arrived = solo.Next(body);
        arrived.invalidated_key = key;

        solo.Step(arrived);

        CheckSane(solo);
        if (HasFailure()) return;
      }
    }
  }
}

// R11.1
TEST_F(HostileTest, AFloodOfResizeRequestsIsRefusedOneByOneOrEndsTheConnection) {
  Solo solo(SmallConfig(true));
  solo.Establish();
  solo.Arrive(wire::ChRcvBuf{65536});
  ASSERT_EQ(solo.Sent<wire::ChRcvBufAck>().size(), 1u);
  EXPECT_EQ(std::get<wire::ChRcvBufAck>(solo.Sent<wire::ChRcvBufAck>()[0].message.body).actual_size,
            SmallConfig(true).receive_buffer_bytes);
  // From here on the peer gives no credit to answer with.
  solo.TellBuffers(0);
  solo.Arrive(wire::ChRcvBuf{65536});
  EXPECT_EQ(solo.Last<Send>().size(), 0u);

  solo.Arrive(wire::ChRcvBuf{65536});

  EXPECT_EQ(solo.Last<Disconnect>().size(), 1u);
}

TEST_F(HostileTest, RandomTalkNeverBreaksAnInvariant) {
  const std::vector<wire::Body> bodies = EveryBody();
  for (uint64_t seed = 1; seed <= 5000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    Solo solo(SmallConfig(true));
    solo.exposes = !random.Chance(1, 4);
    solo.Establish();
    size_t finished = 0;
    for (int i = 0; i < 30 && solo.Last<Disconnect>().empty(); ++i) {
      const uint32_t length = static_cast<uint32_t>(random.Below(12000));
      switch (random.Below(8)) {
        case 0:
          solo.Send(length, Large());
          break;
        case 1:
          solo.Receive(length, Placeable());
          break;
        case 2:
          solo.FinishSends();
          break;
        case 3:
          if (Solo::Of<Read>(solo.all()).size() > finished) {
            solo.Step(ReadFinished{});
            ++finished;
          }
          break;
        case 4:
          solo.TellBuffers(static_cast<uint16_t>(random.Below(20)));
          solo.Arrive(wire::SrcAvail{length + 2, 7, length}, random.Chance(1, 2) ? 1 : 0);
          break;
        default:
          solo.Arrive(bodies[random.Below(random.Chance(1, 4) ? bodies.size() : 4)],
                      static_cast<uint32_t>(random.Chance(1, 2) ? random.Below(1000) : 0));
          break;
      }
    }
    CheckSane(solo);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace esdp::sdp::testing
