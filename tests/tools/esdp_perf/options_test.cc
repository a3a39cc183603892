#include "tools/esdp_perf/options.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tools/esdp_perf/fields.h"
#include "tools/esdp_perf/task.h"

namespace esdp_perf {
namespace {

absl::StatusOr<Options> Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "esdp_perf");
  return ParseOptions(static_cast<int>(arguments.size()), arguments.data());
}

std::string Complaint(std::vector<const char*> arguments) {
  return Parse(std::move(arguments)).status().ToString();
}

TEST(OptionsTest, ReadsSizesInPowersOf1024) {
  EXPECT_EQ(ParseSize("17").value(), 17u);
  EXPECT_EQ(ParseSize("64K").value(), 65536u);
  EXPECT_EQ(ParseSize("1M").value(), 1048576u);
  EXPECT_EQ(ParseSize("2G").value(), uint64_t{2} << 30);
}

TEST(OptionsTest, RefusesWhatIsNoSize) {
  for (const char* text : {"", "K", "1T", "-1", "1.5M", "0x10", "99999999999999999999", "1M ",
                           "18446744073709551615K"}) {
    EXPECT_FALSE(ParseSize(text).ok()) << text;
  }
}

TEST(OptionsTest, DefaultsDependOnTheMode) {
  const Task bandwidth = Parse({"--port", "1"})->tasks[0];
  EXPECT_EQ(bandwidth.size, 1u << 20);
  EXPECT_EQ(bandwidth.depth, 8u);
  const Task latency = Parse({"--port", "1", "--mode", "latency"})->tasks[0];
  EXPECT_EQ(latency.size, 64u);
  EXPECT_EQ(latency.depth, 1u);
  const Task rate = Parse({"--mode", "rate", "--port", "1"})->tasks[0];
  EXPECT_EQ(rate.receive_size, 65536u);
}

TEST(OptionsTest, PathsBecomeThresholds) {
  const auto options =
      Parse({"--port", "1", "--path", "copy,zcopy,threshold", "--threshold", "1K"});
  ASSERT_EQ(options->tasks.size(), 3u);
  EXPECT_EQ(options->tasks[0].threshold, kNever);
  EXPECT_EQ(options->tasks[1].threshold, 0u);
  EXPECT_EQ(options->tasks[2].threshold, 1024u);
}

TEST(OptionsTest, AFileBothWaysIsSentAndThenFetched) {
  const auto options = Parse({"--port", "1", "--file", "/some/where/data", "--direction", "both"});
  ASSERT_EQ(options->tasks.size(), 2u);
  EXPECT_EQ(options->tasks[0].file, "data");
  EXPECT_TRUE(options->tasks[0].send && !options->tasks[0].receive);
  EXPECT_TRUE(!options->tasks[1].send && options->tasks[1].receive);
}

TEST(OptionsTest, AComplaintNamesTheOption) {
  EXPECT_NE(Complaint({"--colour", "red"}).find("--colour"), std::string::npos);
  EXPECT_NE(Complaint({"--port"}).find("--port wants a value"), std::string::npos);
  EXPECT_NE(Complaint({"--port", "65536"}).find("--port"), std::string::npos);
  EXPECT_NE(Complaint({"--port", "1", "--size", "0"}).find("--size"), std::string::npos);
  EXPECT_NE(Complaint({"--port", "1", "--depth", "x"}).find("--depth"), std::string::npos);
  EXPECT_NE(Complaint({"--port", "1", "--seconds", "-1"}).find("--seconds"), std::string::npos);
  EXPECT_NE(Complaint({"--port", "1", "--path", "best"}).find("--path"), std::string::npos);
  EXPECT_NE(Complaint({"--port", "1", "--mode", "warp"}).find("--mode"), std::string::npos);
  EXPECT_NE(Complaint({"--connect", "127.0.0.1"}).find("--port"), std::string::npos);
}

TEST(OptionsTest, ASimulatedRunHasNoPeerAndLastsShortly) {
  const auto options =
      Parse({"--fabric", "sim", "--testbed", "mine.txtpb", "--path", "copy,zcopy"});
  ASSERT_TRUE(options.ok()) << options.status().ToString();
  EXPECT_EQ(options->testbed, "mine.txtpb");
  ASSERT_EQ(options->tasks.size(), 2u);
  EXPECT_LT(options->tasks[0].seconds, 1);
}

TEST(OptionsTest, WhatIsNotSimulatedIsRefusedWithWhatToDo) {
  const auto complaint = [](std::vector<const char*> more) {
    more.insert(more.begin(), {"--fabric", "sim", "--testbed", "mine.txtpb"});
    return Complaint(std::move(more));
  };
  EXPECT_NE(complaint({"--server"}).find("leave --server"), std::string::npos);
  EXPECT_NE(complaint({"--connect", "127.0.0.1"}).find("--connect"), std::string::npos);
  EXPECT_NE(complaint({"--port", "1"}).find("--port"), std::string::npos);
  EXPECT_NE(complaint({"--file", "data"}).find("another fabric"), std::string::npos);
  EXPECT_NE(complaint({"--folder", "."}).find("another fabric"), std::string::npos);
  EXPECT_NE(complaint({"--congestion", "cubic"}).find("--congestion"), std::string::npos);
  EXPECT_NE(complaint({"--checksum"}).find("--checksum"), std::string::npos);
  EXPECT_NE(complaint({"--lend-pages"}).find("--lend-pages"), std::string::npos);
  EXPECT_NE(Complaint({"--fabric", "sim", "--port", "1"}).find("--testbed"), std::string::npos);
  EXPECT_NE(Complaint({"--fabric", "sim:7", "--server"}).find("--testbed"), std::string::npos);
  EXPECT_NE(Complaint({"--testbed", "mine.txtpb", "--port", "1"}).find("--fabric sim"),
            std::string::npos);
  EXPECT_NE(Complaint({"--testbed", "mine.txtpb", "--fabric", "sim:7"}).find("seed"),
            std::string::npos);
}

TEST(TaskTest, ReachesTheServerAsItWas) {
  Task task = Parse({"--port",       "1",         "--mode",     "rate", "--seed",         "9",
                     "--buffers",    "64",        "--sources",  "3",    "--buffer-bytes", "68K",
                     "--region-key", "--foreign", "--receives", "12",   "--warm-up",      "0.5",
                     "--batch",      "32",        "--targets",  "2"})
                  ->tasks[0];
  EXPECT_EQ(task.buffer_bytes, 68u << 10);
  EXPECT_EQ(task.sources, 3U);
  EXPECT_EQ(task.targets, 2U);
  EXPECT_EQ(task.receives, 12U);
  EXPECT_EQ(task.batch, 32U);
  EXPECT_EQ(task.warm_up, 0.5);
  task.seconds = 0.1;
  task.congestion = "cubic";
  task.lend_pages = true;
  const auto fields = Fields::Decode(ToFields(task).Encode());
  ASSERT_TRUE(fields.has_value());
  EXPECT_EQ(TaskFromFields(*fields).value(), task);
}

// What a client sends is not trusted.
TEST(TaskTest, ValuesThatNoRunCanHaveAreRefused) {
  const auto refused = [](const char* name, const char* value) {
    Fields fields = ToFields(Task());
    fields.Set(name, value);
    return !TaskFromFields(fields).ok();
  };
  EXPECT_FALSE(refused("size", "4096"));
  EXPECT_TRUE(refused("size", "0"));
  EXPECT_TRUE(refused("size", "99999999999"));
  EXPECT_TRUE(refused("depth", "4097"));
  EXPECT_TRUE(refused("connections", "1025"));
  EXPECT_TRUE(refused("buffers", "2"));
  EXPECT_TRUE(refused("buffer_bytes", "1048577"));
  EXPECT_FALSE(refused("sources", "8"));
  EXPECT_TRUE(refused("sources", "9"));
  EXPECT_FALSE(refused("targets", "8"));
  EXPECT_TRUE(refused("targets", "9"));
  EXPECT_TRUE(refused("batch", "0"));
  EXPECT_FALSE(refused("batch", "8"));
  EXPECT_TRUE(refused("batch", "9"));
  EXPECT_TRUE(refused("seconds", "nan"));
  EXPECT_TRUE(refused("seconds", "inf"));
  EXPECT_FALSE(refused("warm_up", "3"));
  EXPECT_TRUE(refused("warm_up", "-1"));
  EXPECT_TRUE(refused("warm_up", "nan"));
  EXPECT_TRUE(refused("mode", "file"));
  EXPECT_TRUE(refused("mode", "anything"));
  EXPECT_TRUE(refused("send", "0"));
}

TEST(TaskTest, ReceivesThatTakeWhatComesAreAMegabyteUnlessTold) {
  Task task;
  EXPECT_EQ(ReceivesInFlight(task), task.depth);
  task.receive_size = 256 << 10;
  EXPECT_EQ(ReceivesInFlight(task), 4u);
  task.receive_size = 1 << 20;
  EXPECT_EQ(ReceivesInFlight(task), 1u);
  task.receives = 40;
  EXPECT_EQ(ReceivesInFlight(task), 40u);
  EXPECT_TRUE(Check(task).ok());
  task.receives = 4097;
  EXPECT_FALSE(Check(task).ok());
  task.receives = 4096;
  task.receive_size = 1 << 30;
  EXPECT_FALSE(Check(task).ok()) << "more memory than a run may have";
  task.receive_size = 0;
  EXPECT_FALSE(Check(task).ok()) << "receives that are filled are as many as the depth";
}

TEST(TaskTest, OnlyARunOfSomeSecondsHasAWarmUp) {
  Task task;
  task.warm_up = 1;
  EXPECT_TRUE(Check(task).ok());
  task.bytes = 1;
  EXPECT_FALSE(Check(task).ok());
  task.bytes = 0;
  task.mode = Task::Mode::kLatency;
  task.depth = 1;
  EXPECT_FALSE(Check(task).ok());
}

// The next one would change what an earlier one still needs.
TEST(TaskTest, FewerBuffersThanOperationsInFlightAreNotVerified) {
  for (uint64_t Task::*buffers : {&Task::sources, &Task::targets}) {
    Task task;
    task.*buffers = task.depth - 1;
    EXPECT_TRUE(Check(task).ok());
    task.verify = true;
    EXPECT_FALSE(Check(task).ok());
    task.*buffers = task.depth;
    EXPECT_TRUE(Check(task).ok());
  }
}

TEST(TaskTest, AFileOutsideTheFolderIsRefused) {
  for (const char* name : {"../secret", "/etc/passwd", "a/b", "..", ".hidden", ""}) {
    Task task;
    task.mode = Task::Mode::kFile;
    task.file = name;
    EXPECT_FALSE(Check(task).ok()) << name;
  }
}

TEST(FieldsTest, WhatIsNoListOfFieldsIsRefused) {
  EXPECT_TRUE(Fields::Decode("").has_value());
  EXPECT_TRUE(Fields::Decode("a=\nb=1=2\n").has_value());
  EXPECT_FALSE(Fields::Decode("a").has_value());
  EXPECT_FALSE(Fields::Decode("a=1").has_value());
  EXPECT_FALSE(Fields::Decode("a\nb=1\n").has_value());
  EXPECT_FALSE(Fields::Decode("a=1\na=2\n").has_value());
}

}  // namespace
}  // namespace esdp_perf
