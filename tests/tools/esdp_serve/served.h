#ifndef ESDP_TESTS_TOOLS_ESDP_SERVE_SERVED_H_
#define ESDP_TESTS_TOOLS_ESDP_SERVE_SERVED_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "esdp/context.h"
#include "tests/tools/esdp_files/folder.h"
#include "tools/esdp_get/connection.h"
#include "tools/esdp_get/download.h"
#include "tools/esdp_serve/metrics.h"
#include "tools/esdp_serve/server.h"

namespace esdp_serve {

// A server on a thread of this process, over qpip on the loopback.
class ServedTest : public testing::Test {
 protected:
  void SetUp() override { folder_.MakeFolder("root"); }
  void TearDown() override { EndServer(); }

  void Serve(Options options = {}) {
    options.root = folder_.Path("root");
    options.listen = esdp::Address::Loopback(esdp::Family::kIpv4, 0);
    auto server = Server::Open(options, metrics_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    thread_ = std::thread([this] { status_ = server_->Run(); });
  }
  void EndServer() {
    if (!thread_.joinable()) return;
    server_->Stop();
    thread_.join();
    EXPECT_TRUE(status_.ok()) << status_;
    EXPECT_EQ(metrics_.clients, 0u);
    EXPECT_EQ(metrics_.slots_in_use, 0u);
  }
  std::unique_ptr<esdp_get::Connection> Connect() const {
    auto connection = esdp_get::Connection::Open("qpip", server_->address());
    EXPECT_TRUE(connection.ok()) << connection.status();
    return connection.ok() ? *std::move(connection) : nullptr;
  }
  // Fetches a file of the root, and gives what came.
  absl::Status Fetch(esdp_get::Connection& connection, const std::string& name,
                     esdp_get::DownloadOptions options = {}) {
    esdp_get::Downloader downloader(connection, options, [](const auto&, uint64_t, uint64_t) {});
    const absl::Status status = downloader.Fetch(name, folder_.Path("fetched"));
    whole_ = downloader.whole();
    return status;
  }
  void ExpectFetched(esdp_get::Connection& connection, const std::string& name,
                     const esdp_get::DownloadOptions& options = {}) {
    const absl::Status status = Fetch(connection, name, options);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(folder_.Read("fetched") == folder_.Read("root/" + name)) << name;
  }
  // Bytes that differ from place to place.
  std::string Make(const std::string& name, size_t length) const {
    std::string content(length, '\0');
    uint64_t state = length + 1;
    for (char& byte : content) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      byte = static_cast<char>(state >> 56);
    }
    folder_.Write("root/" + name, content);
    return content;
  }
  static esdp_files::wire::Request GetRequest(const std::string& name) {
    esdp_files::wire::Request request;
    request.mutable_get()->set_name(name);
    return request;
  }
  // Until the server has counted so many; the test's own time ends it otherwise.
  static void AwaitCount(const Metrics::Count& count, uint64_t value) {
    while (count != value) std::this_thread::yield();
  }

  esdp_files::TestFolder folder_;
  Metrics metrics_;
  std::unique_ptr<Server> server_;
  bool whole_ = false;  // the connection, after Fetch

 private:
  std::thread thread_;
  absl::Status status_;
};

// A client that says what it likes.
class RawClient {
 public:
  explicit RawClient(const esdp::Address& server)
      : context_(*esdp::Context::Open({.fabric = "qpip"})),
        queue_(*context_.CreateQueue({})),
        socket_(*context_.CreateSocket(server.family())) {
    EXPECT_TRUE(Await(socket_.Connect(server, {.queue = queue_})).ok());
  }
  void Send(const std::string& bytes) {
    Await(socket_.SendCopy({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()},
                           esdp::SendFlags::kNone, {.queue = queue_}));
  }
  // Everything that the server says until it ends the connection.
  std::string ReadToEnd() {
    std::string all;
    std::vector<std::byte> some(100'000);
    while (true) {
      const esdp::Event event = Await(
          socket_.RecvCopy({some.data(), some.size()}, esdp::RecvFlags::kNone, {.queue = queue_}));
      if (!event.ok() || event.bytes == 0) return all;
      all.append(reinterpret_cast<const char*>(some.data()), event.bytes);
    }
  }
  // Over a client's own connection, beside what it says itself.
  static void SendOver(esdp_get::Connection& connection, const std::string& bytes) {
    const auto op = connection.socket().SendCopy(
        {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, esdp::SendFlags::kNone,
        connection.Args());
    EXPECT_TRUE(op.ok()) << op.status();
  }
  void Shutdown() { Await(socket_.Shutdown({.queue = queue_})); }

 private:
  esdp::Event Await(const absl::StatusOr<esdp::OpId>& op) {
    esdp::Event event;
    event.code = op.status().code();
    while (op.ok() && queue_.Dequeue({&event, 1}).ok() && event.op != *op) {
    }
    return event;
  }
  esdp::Context context_;
  esdp::EventQueue queue_;
  esdp::Socket socket_;
};

}  // namespace esdp_serve

#endif  // ESDP_TESTS_TOOLS_ESDP_SERVE_SERVED_H_
