#include "impl/sockets/blocking/blocking_options.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"

// What stands in for the options of a Stream that are absent.

namespace esdp::sockets {
namespace {

constexpr size_t kKiB = 1024;

BlockingOptions Of(const StreamOptions& given, Transport transport) {
  return OptionsInForce(given, transport, absl::InfiniteFuture());
}

TEST(BlockingOptionsTest, ADeviceHasFewLargeChunksAndNothingElseHas) {
  const BlockingOptions device = Of({}, Transport::kVerbs);
  EXPECT_EQ(device.chunk_bytes, 512 * kKiB);
  EXPECT_EQ(device.chunks_max, 2u);
  for (const Transport cheap : {Transport::kQpip, Transport::kSim}) {
    EXPECT_EQ(Of({}, cheap).chunk_bytes, 256 * kKiB) << ToString(cheap);
    EXPECT_EQ(Of({}, cheap).chunks_max, 4u) << ToString(cheap);
  }
}

TEST(BlockingOptionsTest, NoCallHasMoreThanAMebibyteRegisteredUnlessItIsTold) {
  for (const Transport transport : {Transport::kQpip, Transport::kSim, Transport::kVerbs}) {
    const BlockingOptions options = Of({}, transport);
    EXPECT_EQ(options.chunk_bytes * options.chunks_max, 1024 * kKiB) << ToString(transport);
  }
}

TEST(BlockingOptionsTest, WhatIsGivenIsInForceOnEachTransportAndTheRestAsItWouldBe) {
  for (const Transport transport : {Transport::kQpip, Transport::kSim, Transport::kVerbs}) {
    const BlockingOptions plain = Of({}, transport);
    const BlockingOptions bytes = Of({.chunk_bytes = 4096}, transport);
    EXPECT_EQ(bytes.chunk_bytes, 4096u) << ToString(transport);
    EXPECT_EQ(bytes.chunks_max, plain.chunks_max) << ToString(transport);
    const BlockingOptions count = Of({.chunks_max = 16}, transport);
    EXPECT_EQ(count.chunk_bytes, plain.chunk_bytes) << ToString(transport);
    EXPECT_EQ(count.chunks_max, 16u) << ToString(transport);
  }
}

TEST(BlockingOptionsTest, AThresholdIsLearnedWhereARegistrationCostsAndNoneIsGiven) {
  EXPECT_EQ(Of({}, Transport::kVerbs).zero_copy_from, 512 * kKiB);
  EXPECT_TRUE(Of({}, Transport::kVerbs).adapts);
  EXPECT_FALSE(Of({.zcopy_min = 4096}, Transport::kVerbs).adapts);
  EXPECT_EQ(Of({.zcopy_min = 4096}, Transport::kVerbs).zero_copy_from, 4096u);
  EXPECT_EQ(Of({}, Transport::kQpip).zero_copy_from, 64 * kKiB);
  EXPECT_FALSE(Of({}, Transport::kQpip).adapts);
  EXPECT_TRUE(Of({}, Transport::kSim).adapts);
}

}  // namespace
}  // namespace esdp::sockets
