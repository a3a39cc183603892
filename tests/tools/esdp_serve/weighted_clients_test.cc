#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "tests/base/sanitized.h"
#include "tests/tools/esdp_serve/served.h"
#include "tools/esdp_files/chunks.h"
#include "tools/esdp_get/download.h"

// Two clients, each with a weight, of a server that has too few slots for both.

namespace esdp_serve {
namespace {

using esdp_files::kChunkBytes;

class WeightedClientsTest : public ServedTest {
 protected:
  // How many bytes one gets for each byte of the other's, while both fetch the same file.
  double RatioOf(uint32_t weight, uint32_t other) {
    const uint64_t size = (esdp::kSanitized ? 40 : 160) * kChunkBytes;
    Make("file", size);
    std::atomic<uint64_t> others{0};
    std::atomic<bool> ended{false};
    std::thread beside([&] {
      while (!ended) FetchAll(other, "beside", [&](uint64_t bytes) { others += bytes; });
    });
    uint64_t begun = 0;
    while (others == 0) std::this_thread::yield();
    FetchAll(weight, "fetched", [&](uint64_t) {
      if (begun == 0) begun = others;
    });
    const uint64_t meanwhile = others - begun;
    ended = true;
    beside.join();
    const double ratio =
        static_cast<double>(size) / static_cast<double>(std::max(meanwhile, kChunkBytes));
    RecordProperty("ratio", std::to_string(ratio));
    return ratio;
  }

 private:
  void FetchAll(uint32_t weight, const std::string& to,
                const std::function<void(uint64_t)>& moved) {
    const auto connection = esdp_get::Connection::Open("qpip", server_->address(), weight);
    ASSERT_TRUE(connection.ok()) << connection.status();
    uint64_t before = 0;
    esdp_get::Downloader downloader(**connection, {}, [&](const auto&, uint64_t done, uint64_t) {
      if (done > before) moved(done - before);
      before = done;
    });
    const absl::Status status = downloader.Fetch("file", folder_.Path(to));
    EXPECT_TRUE(status.ok()) << status;
  }
};

TEST_F(WeightedClientsTest, WhoAsksForFewerSharesGetsSoMuchLess) {
  Options options{.slots = 2};
  ASSERT_TRUE(options.weights.Add("127.0.0.0/8=9").ok());
  Serve(options);
  const double ratio = RatioOf(9, 1);
  EXPECT_GT(ratio, 5);
  EXPECT_LT(ratio, 14);
}

TEST_F(WeightedClientsTest, NobodyGetsMoreThanTheServerGives) {
  Serve({.slots = 2});
  EXPECT_LT(RatioOf(9, 1), 2.5);
}

}  // namespace
}  // namespace esdp_serve
