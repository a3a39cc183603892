#include "impl/assembly/fabric_name.h"

#include <string>

#include "esdp/context.h"
#include "esdp/status.h"
#include "gtest/gtest.h"

namespace esdp::assembly {
namespace {

using fabric::verbs::Profile;

bool Contains(const absl::Status& status, const std::string& text) {
  const std::string message(status.message().data(), status.message().size());
  return message.find(text) != std::string::npos;
}

TEST(FabricNameTest, TheNamesOfWhatIsBuiltAreRead) {
  EXPECT_EQ(ParseFabricName("qpip")->transport, Transport::kQpip);
  EXPECT_EQ(ParseFabricName("sim")->transport, Transport::kSim);
  EXPECT_EQ(ParseFabricName("auto")->transport, Transport::kNone);
  EXPECT_EQ(ParseFabricName("auto:rxe0")->transport, Transport::kNone);
  EXPECT_EQ(ParseFabricName("auto:rxe0")->device, "rxe0");
  EXPECT_FALSE(ParseFabricName("auto:rxe0")->with_local);
  EXPECT_TRUE(ParseFabricName("auto")->with_local);
  EXPECT_FALSE(ParseFabricName("auto:nolocal")->with_local);
  EXPECT_EQ(ParseFabricName("auto:nolocal")->device, "");
}

TEST(FabricNameTest, TheDeviceOfVerbsIsRead) {
  EXPECT_EQ(ParseFabricName("verbs")->transport, Transport::kVerbs);
  EXPECT_EQ(ParseFabricName("verbs")->device, "");
  EXPECT_EQ(ParseFabricName("verbs:rxe0")->transport, Transport::kVerbs);
  EXPECT_EQ(ParseFabricName("verbs:rxe0")->device, "rxe0");
  EXPECT_EQ(ParseFabricName("verbs:rxe0")->profile, Profile::kTcp);
}

TEST(FabricNameTest, ThePortSpaceOfVerbsIsRead) {
  EXPECT_EQ(ParseFabricName("verbs:rxe0:ib")->device, "rxe0");
  EXPECT_EQ(ParseFabricName("verbs:rxe0:ib")->profile, Profile::kInfiniBand);
  EXPECT_EQ(ParseFabricName("verbs:mlx5_0:native")->device, "mlx5_0");
  EXPECT_EQ(ParseFabricName("verbs:mlx5_0:native")->profile, Profile::kNative);
  EXPECT_EQ(ParseFabricName("verbs::ib")->device, "");
}

TEST(FabricNameTest, TheSeedOfASimulationIsRead) {
  EXPECT_EQ(ParseFabricName("sim:0")->seed, 0u);
  EXPECT_EQ(ParseFabricName("sim:42")->seed, 42u);
  EXPECT_EQ(ParseFabricName("sim:18446744073709551615")->seed, ~uint64_t{0});
}

TEST(FabricNameTest, ASeedThatIsNoNumberIsRefusedWithAnExample) {
  for (const char* text :
       {"sim:", "sim:x", "sim:-1", "sim:1x", "sim: 1", "sim:18446744073709551616"}) {
    const absl::Status status = ParseFabricName(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(KindOf(status), ErrorKind::kInvalidArgument) << text;
    EXPECT_TRUE(Contains(status, "sim:42")) << status;
  }
}

TEST(FabricNameTest, AnUnknownNameIsRefusedWithTheKnownOnes) {
  for (const char* text :
       {"", "QPIP", "qpip ", "simulator", "tcp", "sim42", "verbs:", "verbs0", "auto:"}) {
    const absl::Status status = ParseFabricName(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    for (const char* known : {"auto", "qpip", "sim"}) EXPECT_TRUE(Contains(status, known)) << text;
  }
}

TEST(DiagnoseTest, WhatItCallsAvailableCanBeOpenedAndTheRestCannot) {
  const DiagnosticsReport report = Context::Diagnose({});
  ASSERT_FALSE(report.fabrics.empty());
  for (const FabricReport& fabric : report.fabrics) {
    EXPECT_EQ(Context::Open({.fabric = fabric.name}).ok(), fabric.available) << fabric.name;
    EXPECT_FALSE(fabric.text.empty());
    EXPECT_NE(report.ToString().find(fabric.text), std::string::npos);
  }
}

TEST(DiagnoseTest, WhatAutoTakesIsTheFirstThatIsThereAndAListenerSaysSo) {
  const DiagnosticsReport report = Context::Diagnose({.fabric = "auto"});
  bool device = false;
  for (const FabricReport& fabric : report.fabrics) {
    device = device || (fabric.name == "verbs" && fabric.available);
  }
  EXPECT_EQ(report.chosen, "local");
  EXPECT_EQ(Context::Diagnose({.fabric = "auto:nolocal"}).chosen, device ? "verbs" : "qpip");
  EXPECT_NE(report.reason.find("device"), std::string::npos) << report.reason;
  EXPECT_EQ(Context::Diagnose({.fabric = "qpip"}).chosen, "qpip");

  absl::StatusOr<Context> context = Context::Open({.fabric = "auto"});
  ASSERT_TRUE(context.ok()) << context.status();
  Socket listener = *context->CreateSocket(Family::kIpv4, {});
  EXPECT_EQ(listener.transport(), Transport::kNone);
  ASSERT_TRUE(listener.Bind(*Address::Parse("127.0.0.1:0")).ok());
  ASSERT_TRUE(listener.Listen(1).ok());
  EXPECT_EQ(listener.transport(), Transport::kQpip);  // no device has this address
  EXPECT_FALSE(Context::Open({.fabric = "auto:no-such-device"}).ok());
}

TEST(DiagnoseTest, WhatOpenWouldRefuseHasNoChoiceButAReason) {
  const DiagnosticsReport report = Context::Diagnose({.fabric = "nonsense"});
  EXPECT_TRUE(report.chosen.empty());
  EXPECT_NE(report.reason.find("nonsense"), std::string::npos) << report.reason;
}

TEST(DiagnoseTest, TheLimitOfLockedMemoryIsToldInOrder) {
  const DiagnosticsReport report = Context::Diagnose({});
  EXPECT_LE(report.memlock_soft, report.memlock_hard);
  EXPECT_GT(report.memlock_hard, 0u);
}

}  // namespace
}  // namespace esdp::assembly
