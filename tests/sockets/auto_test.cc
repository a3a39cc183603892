// Contexts of "auto" on one host: whom they meet, over which fabric, and under which port.

#include <mutex>
#include <string>
#include <vector>

#include "esdp/context.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

namespace esdp::contract {
namespace {

constexpr size_t kBytes = 300'000;

class AutoTest : public PairTest {
 protected:
  void SetUp() override {}

  void Open(Side& side, const std::string& fabric) {
    ContextOptions options = OptionsOf(world());
    options.fabric = fabric;
    options.log = [this](std::string_view line) {
      const std::lock_guard lock(log_mutex_);
      log_ += std::string(line) + "\n";
    };
    ASSERT_NO_FATAL_FAILURE(side.Open(options));
  }
  // What both sides say of the connection, over which bytes go both ways.
  Transport Meet(const std::string& server, const std::string& client) {
    Open(server_, server);
    Open(client_, client);
    Connect();
    if (HasFatalFailure()) return Transport::kNone;
    CarryBothWays();
    EXPECT_EQ(server_.socket.transport(), client_.socket.transport());
    return client_.socket.transport();
  }
  void CarryBothWays() {
    Memory& one = Make(client_, kBytes);
    Memory& other = Make(server_, kBytes);
    one.Fill(1);
    Carry(client_, one, server_, other, kBytes);
    Carry(server_, other, client_, one, kBytes);
  }
  std::string Log() {
    const std::lock_guard lock(log_mutex_);
    return log_;
  }

  std::mutex log_mutex_;
  std::string log_;
};
INSTANTIATE_TEST_SUITE_P(On, AutoTest, ::testing::Values(World::kLocalThread, World::kLocalManual),
                         ParamName);

TEST_P(AutoTest, OnOneHostBothTakeSharedMemory) {
  EXPECT_EQ(Meet("auto", "auto"), Transport::kLocal);
  const std::vector<Transport> opened = client_.context.transports();
  ASSERT_GE(opened.size(), 2u);  // and devices, where there are some
  EXPECT_EQ(opened.front(), Transport::kLocal);
  EXPECT_EQ(opened.back(), Transport::kQpip);
  EXPECT_TRUE(Context().transports().empty());
  EXPECT_EQ(listener_.transport(), Transport::kQpip) << "it is there for other hosts too";
}

TEST_P(AutoTest, AListenerIsFoundUnderOnePortByAll) {
  EXPECT_EQ(Meet("auto", "qpip"), Transport::kQpip);
  for (const auto& [fabric, transport] :
       {std::pair("local", Transport::kLocal), std::pair("auto", Transport::kLocal),
        std::pair("auto:nolocal", Transport::kQpip)}) {
    const Address address = listener_.local();
    client_ = Side();
    Open(client_, fabric);
    ASSERT_NO_FATAL_FAILURE(ConnectTo(address));
    EXPECT_EQ(client_.socket.transport(), transport) << fabric;
  }
}

TEST_P(AutoTest, WhereNobodyListensBySharedMemoryThePeerIsReachedByTcpWithoutAWord) {
  EXPECT_EQ(Meet("qpip", "auto"), Transport::kQpip);
  EXPECT_EQ(Log(), "");
}

TEST_P(AutoTest, ANameThatSomebodyHasTakenDoesNotKeepTheListenerFromItsPort) {
  Open(client_, "local");
  Open(server_, "auto");
  Socket squatter;
  absl::Status listening = absl::UnavailableError("not tried");
  // The number that shared memory has free may be one that TCP has in use.
  for (int i = 0; i < 20 && !listening.ok(); ++i) {
    squatter = *client_.context.CreateSocket(Family::kIpv4);
    ASSERT_TRUE(squatter.Bind(HostOf(world(), 0)).ok());
    ASSERT_TRUE(squatter.Listen(1).ok());
    listener_ = *server_.context.CreateSocket(Family::kIpv4);
    listening = listener_.Bind(squatter.local());
    if (listening.ok()) listening = listener_.Listen(1);
  }
  EXPECT_TRUE(listening.ok()) << listening;
  EXPECT_NE(Log().find("local does not listen on"), std::string::npos) << Log();
}

TEST_P(AutoTest, WhereNobodyListensAtAllTheConnectIsRefused) {
  Open(client_, "auto");
  Open(server_, "auto");
  const Address address = Listen();
  listener_ = Socket();
  client_.socket = *client_.context.CreateSocket(Family::kIpv4);
  const OpId connect = client_.Accepted(client_.socket.Connect(address, client_.Args()));
  EXPECT_EQ(End(client_, connect).kind, ErrorKind::kRefused);
}

}  // namespace
}  // namespace esdp::contract
