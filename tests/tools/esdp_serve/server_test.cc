#include "tools/esdp_serve/server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/tools/esdp_serve/served.h"
#include "tools/esdp_files/chunks.h"
#include "tools/esdp_files/descriptor.h"
#include "tools/esdp_files/frame.h"
#include "tools/esdp_get/file_receiver.h"
#include "tools/esdp_get/tree.h"

namespace esdp_serve {
namespace {

namespace wire = esdp_files::wire;
using esdp_files::kChunkBytes;
using esdp_files::ToFrame;

class ServerTest : public ServedTest {};

TEST_F(ServerTest, FilesOfEverySizeArriveWholeWithAndWithoutSums) {
  Serve();
  const auto connection = Connect();
  constexpr size_t kSmall = 64 * 1024;
  for (const size_t length : {size_t{0}, size_t{1}, kSmall - 1, kSmall, kSmall + 1, kChunkBytes - 1,
                              kChunkBytes, kChunkBytes + 1, 9 * kChunkBytes + 12345}) {
    Make("file", length);
    ExpectFetched(*connection, "file");
    ExpectFetched(*connection, "file", {.crc = true});
  }
}

// Whether the file system tells what is in memory.
bool IsReadWithoutWaiting(const std::string& path) {
  const esdp_files::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::byte first{};
  iovec place{&first, 1};
  return preadv2(file.get(), &place, 1, 0, RWF_NOWAIT) >= 0 || errno != EOPNOTSUPP;
}

TEST_F(ServerTest, SmallFilesAreKeptOpenForAMomentAndAreNeverOldOnes) {
  Serve();
  const auto connection = Connect();
  Make("file", 4096);
  if (!IsReadWithoutWaiting(folder_.Path("root/file"))) {
    GTEST_SKIP() << "nothing is read here without waiting";
  }
  ExpectFetched(*connection, "file");
  // A moment may pass between two of them; the test's own time ends it where none is ever kept.
  while (metrics_.cached_files == 0) ExpectFetched(*connection, "file", {.crc = true});
  Make("other", 5000);
  std::filesystem::rename(folder_.Path("root/other"), folder_.Path("root/file"));
  ExpectFetched(*connection, "file");
  EXPECT_EQ(metrics_.cached_files, 1u);
  Make("file", 4096);
  ExpectFetched(*connection, "file");
  while (metrics_.cached_files == 1) ExpectFetched(*connection, "file");
  std::filesystem::remove(folder_.Path("root/file"));
  EXPECT_EQ(Fetch(*connection, "file").code(), absl::StatusCode::kNotFound);
}

TEST_F(ServerTest, ALinkThatLeadsElsewhereIsFollowedAnewAfterAMoment) {
  Serve();
  const auto connection = Connect();
  Make("one", 100);
  const std::string other = Make("other", 200);
  std::filesystem::create_symlink("one", folder_.Path("root/link"));
  ExpectFetched(*connection, "link");
  std::filesystem::remove(folder_.Path("root/link"));
  std::filesystem::create_symlink("other", folder_.Path("root/link"));
  do {  // the test's own time ends it otherwise
    EXPECT_TRUE(Fetch(*connection, "link").ok());
  } while (folder_.Read("fetched") != other);
}

TEST_F(ServerTest, WhatIsAskedAheadComesInItsOrder) {
  Serve();
  const auto connection = Connect();
  esdp_get::Downloader downloader(*connection, {}, [](const auto&, uint64_t, uint64_t) {});
  std::vector<std::string> names;
  for (size_t i = 0; i < 16; ++i) {
    names.push_back(std::to_string(i));
    Make(names.back(), i % 3 == 0 ? kChunkBytes + i : 10 + i);
  }
  names[7] = "nothing";
  ASSERT_EQ(connection->may_ask(), names.size());
  for (const std::string& name : names) ASSERT_TRUE(downloader.Ask(name).ok());
  for (const std::string& name : names) {
    const absl::Status status = downloader.Take(name, folder_.Path("fetched"));
    EXPECT_EQ(status.ok(), name != "nothing") << status;
    if (!status.ok()) continue;
    EXPECT_TRUE(folder_.Read("fetched") == folder_.Read("root/" + name)) << name;
  }
}

TEST_F(ServerTest, AFileThatIsCutShortOnTheWayEndsWithAnErrorAndTheConnectionGoesOn) {
  Serve();
  Make("other", 100);
  for (const bool crc : {false, true}) {
    Make("file", 40 * kChunkBytes);
    const auto connection = Connect();
    wire::Request request = GetRequest("file");
    request.mutable_get()->set_chunk_crc(crc);
    ASSERT_TRUE(connection->Ask(std::move(request)).ok());
    // Asked behind it, and answered all the same.
    ASSERT_TRUE(connection->Ask(GetRequest("other")).ok());
    const auto answer = connection->NextAnswer();
    ASSERT_TRUE(answer.ok()) << answer.status();
    std::filesystem::resize_file(folder_.Path("root/file"), 30 * kChunkBytes + 77);
    auto part = esdp_get::PartFile::Create(folder_.Path("part"), 1, answer->size());
    esdp_get::FileReceiver receiver(*connection);
    uint64_t came = 0;
    const absl::Status status =
        receiver.Receive(*answer, crc, part->fd(), [&](uint64_t bytes) { came += bytes; });
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_EQ(came, 30 * kChunkBytes);
    ASSERT_TRUE(receiver.connection_is_whole());
    esdp_get::Downloader downloader(*connection, {}, [](const auto&, uint64_t, uint64_t) {});
    EXPECT_TRUE(downloader.Take("other", folder_.Path("fetched")).ok());
    ExpectFetched(*connection, "other");
  }
  EXPECT_EQ(metrics_.failed_files, 2u);
}

TEST_F(ServerTest, AFileThatIsWrittenToOnTheWayIsNotTakenForTheOldOne) {
  Serve();
  for (const bool crc : {false, true}) {
    Make("file", 40 * kChunkBytes);
    const auto connection = Connect();
    wire::Request request = GetRequest("file");
    request.mutable_get()->set_chunk_crc(crc);
    const auto answer = connection->Get(std::move(request));
    ASSERT_TRUE(answer.ok()) << answer.status();
    folder_.Write("root/file", std::string(40 * kChunkBytes, 'z'));
    auto part = esdp_get::PartFile::Create(folder_.Path("part"), 1, answer->size());
    esdp_get::FileReceiver receiver(*connection);
    const absl::Status status = receiver.Receive(*answer, crc, part->fd(), [](uint64_t) {});
    EXPECT_FALSE(status.ok());
    ASSERT_TRUE(receiver.connection_is_whole());
    ExpectFetched(*connection, "file");
  }
}

TEST_F(ServerTest, AGetThatIsCancelledEndsInATailAndTheConnectionGoesOn) {
  Serve();
  Make("file", 60 * kChunkBytes);
  const auto connection = Connect();
  ASSERT_TRUE(connection->Ask(GetRequest("file")).ok());
  const auto answer = connection->NextAnswer();
  ASSERT_TRUE(answer.ok());
  // A Cancel has no answer: it is said beside the requests that have.
  RawClient::SendOver(*connection, [&] {
    wire::Request cancel;
    cancel.set_id(77);
    cancel.mutable_cancel()->set_request(answer->id());
    return ToFrame(cancel);
  }());
  auto part = esdp_get::PartFile::Create(folder_.Path("part"), 1, answer->size());
  esdp_get::FileReceiver receiver(*connection);
  const absl::Status status = receiver.Receive(*answer, false, part->fd(), [](uint64_t) {});
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  ASSERT_TRUE(receiver.connection_is_whole());
  Make("small", 10);
  ExpectFetched(*connection, "small");
}

std::string HelloFrame() {
  wire::Request request;
  request.set_id(1);
  request.mutable_hello()->set_version(1);
  return ToFrame(request);
}

TEST_F(ServerTest, WhoBreaksTheProtocolIsToldAndEndedAndNobodyElseIs) {
  Serve();
  Make("file", 3 * kChunkBytes);
  const auto other = Connect();
  wire::Request put;
  put.set_id(2);
  put.mutable_put()->set_name("x");
  const std::vector<std::string> streams = {
      std::string(4, '\0'),
      std::string("\xff\xff\xff\xff", 4),
      "GET / HTTP/1.1\r\n\r\n",
      std::string("\0\0\0\1\xff", 5),
      ToFrame(put),
      HelloFrame() + std::string("\0\0\0\0", 4),
      HelloFrame() + ToFrame(put) + "bytes",
  };
  for (const std::string& stream : streams) {
    RawClient client(server_->address());
    client.Send(stream);
    EXPECT_GT(client.ReadToEnd().size(), 4u) << stream;
  }
  EXPECT_EQ(metrics_.clients_misbehaved, streams.size());
  ExpectFetched(*other, "file");
}

TEST_F(ServerTest, AStreamThatEndsAnywhereEndsItsClientAlone) {
  Serve();
  Make("file", 100);
  const std::string stream = HelloFrame() + [&] {
    wire::Request request = GetRequest("file");
    request.set_id(2);
    return ToFrame(request);
  }();
  for (size_t cut = 0; cut <= stream.size(); ++cut) {
    RawClient client(server_->address());
    if (cut > 0) client.Send(stream.substr(0, cut));
    client.Shutdown();
    client.ReadToEnd();
  }
  const auto connection = Connect();
  ExpectFetched(*connection, "file");
}

TEST_F(ServerTest, AClientThatGoesAwayInTheMiddleTakesNothingWithIt) {
  Serve();
  Make("file", 60 * kChunkBytes);
  for (const bool crc : {false, true}) {
    const auto connection = Connect();
    wire::Request request = GetRequest("file");
    request.mutable_get()->set_chunk_crc(crc);
    ASSERT_TRUE(connection->Get(std::move(request)).ok());
  }
  AwaitCount(metrics_.clients, 0);
  AwaitCount(metrics_.slots_in_use, 0);
}

TEST_F(ServerTest, SixtyFourClientsAtOnceShareSixtyFourSlotsAndEachGetsItsFile) {
  Serve({.slots = 64});
  constexpr size_t kClients = 64;
  for (size_t i = 0; i < kClients; ++i) Make(std::to_string(i), kChunkBytes + 1000 * i);
  std::vector<std::thread> clients;
  std::array<absl::Status, kClients> statuses;
  for (size_t i = 0; i < kClients; ++i) {
    clients.emplace_back([&, i] {
      const std::string name = std::to_string(i);
      const auto connection = Connect();
      if (connection == nullptr) return;
      esdp_get::Downloader downloader(*connection, {.crc = i % 2 == 0},
                                      [](const auto&, uint64_t, uint64_t) {});
      for (int times = 0; times < 3 && statuses[i].ok(); ++times) {
        statuses[i] = downloader.Fetch(name, folder_.Path(name));
      }
    });
  }
  for (std::thread& client : clients) client.join();
  for (size_t i = 0; i < kClients; ++i) {
    const std::string name = std::to_string(i);
    EXPECT_TRUE(statuses[i].ok()) << statuses[i];
    EXPECT_TRUE(folder_.Read(name) == folder_.Read("root/" + name)) << name;
  }
}

TEST_F(ServerTest, OneClientThatTakesNothingHoldsUpNoneOfSixtyFour) {
  Serve({.slots = 16});
  Make("file", 4 * kChunkBytes + 5);
  const auto stalled = Connect();
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(stalled->Ask(GetRequest("file")).ok());
  std::vector<std::unique_ptr<esdp_get::Connection>> clients;
  for (int i = 0; i < 63; ++i) clients.push_back(Connect());
  for (const auto& client : clients) ExpectFetched(*client, "file");
  EXPECT_LE(metrics_.slots_in_use, 4u);
}

TEST_F(ServerTest, WhereSlotsAreShortWhoTakesNothingIsEnded) {
  Serve({.slots = 4, .stalled_seconds = 1});
  Make("file", 20 * kChunkBytes);
  const auto stalled = Connect();
  ASSERT_TRUE(stalled->Ask(GetRequest("file")).ok());
  AwaitCount(metrics_.slots_in_use, 4);
  AwaitCount(metrics_.clients_stalled, 1);
  const auto other = Connect();
  ExpectFetched(*other, "file");
}

TEST_F(ServerTest, OneClientTooManyIsToldToComeAgain) {
  Serve({.clients = 1});
  auto first = Connect();
  const auto second = esdp_get::Connection::Open("qpip", server_->address());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable) << second.status();
  first.reset();
  AwaitCount(metrics_.clients, 0);
  EXPECT_TRUE(esdp_get::Connection::Open("qpip", server_->address()).ok());
}

TEST_F(ServerTest, WhoSaysNothingIsEnded) {
  Serve();
  RawClient client(server_->address());
  EXPECT_EQ(client.ReadToEnd(), "");
  EXPECT_EQ(metrics_.clients_late, 1u);
}

TEST_F(ServerTest, WhatFlowsComesToItsEndWhenTheServerStopsAndNothingElseBegins) {
  Serve();
  Make("file", 60 * kChunkBytes);
  const auto connection = Connect();
  ASSERT_TRUE(connection->Ask(GetRequest("file")).ok());
  ASSERT_TRUE(connection->Ask(GetRequest("file")).ok());
  const auto answer = connection->NextAnswer();
  ASSERT_TRUE(answer.ok());
  server_->Stop();
  auto part = esdp_get::PartFile::Create(folder_.Path("part"), 1, answer->size());
  esdp_get::FileReceiver receiver(*connection);
  const absl::Status status = receiver.Receive(*answer, false, part->fd(), [](uint64_t) {});
  EXPECT_TRUE(status.ok()) << status;
  const auto second = connection->NextAnswer();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->status(), wire::UNAVAILABLE);
}

TEST_F(ServerTest, ATreeIsListedWhole) {
  Serve();
  folder_.MakeFolder("root/a");
  folder_.MakeFolder("root/a/b");
  folder_.MakeFolder("root/empty");
  Make("a/b/file", 1);
  Make("a/file", 2);
  std::filesystem::create_symlink("a/file", folder_.Path("root/link"));
  std::filesystem::create_symlink("/etc/passwd", folder_.Path("root/out"));
  const auto connection = Connect();
  esdp_get::Tree tree;
  ASSERT_TRUE(esdp_get::ListTree(*connection, "", tree).ok());
  EXPECT_EQ(tree.folders, (std::vector<std::string>{"a", "empty", "a/b"}));
  EXPECT_EQ(tree.files, (std::vector<std::string>{"link", "a/file", "a/b/file"}));
  EXPECT_EQ(tree.passed_over, std::vector<std::string>{"out"});
}

TEST_F(ServerTest, AGetGoesOnWhereAnEarlierOneEndedAsLongAsItIsTheSameFile) {
  Serve();
  Make("file", 9 * kChunkBytes + 5);
  const auto connection = Connect();
  wire::Request stat;
  stat.mutable_stat()->set_name("file");
  const auto about = connection->Get(std::move(stat));
  ASSERT_TRUE(about.ok());
  std::vector<size_t> all_left = {5, 3 * kChunkBytes + 7};
  for (size_t chunk = 0; chunk <= 9; ++chunk) all_left.push_back(chunk * kChunkBytes);
  for (const size_t left : all_left) {
    auto part = esdp_get::PartFile::Create(folder_.Path("fetched"), about->etag(), about->size());
    const std::string first = folder_.Read("root/file").substr(0, left);
    ASSERT_EQ(pwrite(part->fd(), first.data(), left, 0), static_cast<ssize_t>(left));
    const uint64_t before = metrics_.sent_bytes;
    ExpectFetched(*connection, "file", {.resume = true});
    EXPECT_EQ(metrics_.sent_bytes - before, 9 * kChunkBytes + 5 - left / kChunkBytes * kChunkBytes);
  }
  auto part = esdp_get::PartFile::Create(folder_.Path("fetched"), about->etag(), about->size());
  ASSERT_EQ(ftruncate(part->fd(), 4 * kChunkBytes), 0);
  Make("file", 9 * kChunkBytes + 5);  // another one by its times
  ExpectFetched(*connection, "file", {.resume = true});
}

}  // namespace
}  // namespace esdp_serve
