#include "impl/switch/rules/rule_parser.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "impl/switch/rules/rule_set.h"

namespace esdp::switching {
namespace {

struct Read {
  RuleSet set;
  std::vector<std::string> errors;
};

RuleErrors Into(std::vector<std::string>& errors) {
  return {.tell =
              [](void* to, const RuleError& error) {
                static_cast<std::vector<std::string>*>(to)->push_back(
                    std::to_string(error.line) + ": " + error.reason + " (" +
                    std::string(error.text) + ")");
              },
          .to = &errors};
}

Read ReadFor(const Program& program, std::string_view text, bool of_environment = false) {
  Read read;
  RuleParser(program, read.set, Into(read.errors)).ReadText(text, of_environment);
  return read;
}

Endpoint At(const char* address, uint16_t port) {
  Endpoint where{.port = port};
  if (inet_pton(AF_INET6, address, where.address.data()) == 1) return where;
  where.address[10] = where.address[11] = 0xFF;
  EXPECT_EQ(inet_pton(AF_INET, address, where.address.data() + 12), 1) << address;
  return where;
}

const Program kIperf = {.name = "iperf3", .path = "/usr/bin/iperf3"};

std::string VerdictOf(const RuleSet& set, Role role, const Endpoint& where) {
  const Rule* const rule = set.Find(role, where);
  if (rule == nullptr) return "none";
  constexpr const char* kNames[] = {"tcp", "sdp", "both", "try"};
  return kNames[static_cast<int>(rule->verdict)];
}

TEST(Rules, TheFirstThatMatchesDecidesForEachRole) {
  const Read read = ReadFor(kIperf,
                            "use tcp server iperf3 *:5202\n"
                            "use sdp client * 10.0.0.0/8:*\n"
                            "use both server ip* *:5201-5203  # a comment\n"
                            "use try connect iperf3 *:*\n");
  EXPECT_TRUE(read.errors.empty()) << read.errors[0];
  struct Case {
    Role role;
    const char* address;
    uint16_t port;
    const char* verdict;
  };
  for (const Case& each : {
           Case{Role::kServer, "127.0.0.1", 5201, "both"},
           Case{Role::kServer, "127.0.0.1", 5202, "tcp"},
           Case{Role::kServer, "::", 5203, "both"},
           Case{Role::kServer, "127.0.0.1", 5204, "none"},
           Case{Role::kClient, "10.255.0.1", 1, "sdp"},
           Case{Role::kClient, "11.0.0.1", 1, "try"},
           Case{Role::kClient, "::ffff:10.1.1.1", 1, "sdp"},
           Case{Role::kClient, "fe80::1", 1, "try"},
       }) {
    EXPECT_EQ(VerdictOf(read.set, each.role, At(each.address, each.port)), each.verdict)
        << each.address << ":" << each.port;
  }
}

TEST(Rules, AnAddressMatchesByItsFirstBits) {
  struct Case {
    const char* where;
    const char* address;
    bool matches;
  };
  for (const Case& each : {
           Case{"*:*", "1.2.3.4", true},
           Case{"0.0.0.0/0:*", "255.1.1.1", true},
           Case{"0.0.0.0/0:*", "fe80::1", false},
           Case{"192.168.1.7:*", "192.168.1.7", true},
           Case{"192.168.1.7:*", "192.168.1.6", false},
           Case{"192.168.0.0/23:*", "192.168.1.7", true},
           Case{"192.168.0.0/23:*", "192.168.2.7", false},
           Case{"[fe80::]/10:*", "febf::1", true},
           Case{"[fe80::]/10:*", "fec0::1", false},
           Case{"::1:*", "::1", true},
           Case{"2001:db8::/32:*", "2001:db8:1::", true},
           Case{"2001:db8::/32:*", "2001:db9::", false},
       }) {
    const Read read = ReadFor(kIperf, "use sdp server * " + std::string(each.where));
    EXPECT_TRUE(read.errors.empty()) << each.where << ": " << read.errors[0];
    EXPECT_EQ(read.set.Find(Role::kServer, At(each.address, 9)) != nullptr, each.matches)
        << each.where << " " << each.address;
  }
}

TEST(Rules, AProgramIsThatOfItsNameOrWithASlashThatOfItsPath) {
  struct Case {
    const char* pattern;
    bool matches;
  };
  for (const Case& each : {Case{"*", true}, Case{"iperf3", true}, Case{"iperf", false},
                           Case{"i[a-z]*3", true}, Case{"/usr/bin/iperf3", true},
                           Case{"/usr/*", true}, Case{"/opt/*", false}, Case{"*/iperf3", true}}) {
    const std::string line = "use sdp server " + std::string(each.pattern) + " *:*";
    EXPECT_EQ(ReadFor(kIperf, line).set.rules().size(), each.matches ? 1u : 0u) << each.pattern;
  }
}

TEST(Rules, OptionsAreThoseOfTheRule) {
  const Read read = ReadFor(kIperf,
                            "use sdp server * *:* mode=direct wait=0 answer=250 zcopy=never "
                            "buffer=131072 fabric=qpip\n"
                            "use sdp client * *:* zcopy=65536\n");
  ASSERT_TRUE(read.errors.empty()) << read.errors[0];
  const RuleOptions& all = read.set.rules()[0].options;
  EXPECT_EQ(all.mode, Mode::kDirect);
  EXPECT_EQ(all.wait_ms, 0u);
  EXPECT_EQ(all.answer_ms, 250u);
  EXPECT_EQ(all.zcopy_bytes, RuleOptions::kNever);
  EXPECT_EQ(all.buffer_bytes, 131'072u);
  const RuleOptions& rest = read.set.rules()[1].options;
  EXPECT_EQ(rest.mode, Mode::kRelay);
  EXPECT_EQ(rest.wait_ms, 2u);
  EXPECT_EQ(rest.answer_ms, 3000u);
  EXPECT_EQ(rest.zcopy_bytes, 65'536u);
}

TEST(Rules, ALineThatCannotBeReadIsToldWithItsNumberAndTheOthersCount) {
  struct Case {
    const char* line;
    const char* error;
  };
  for (const Case& each : {
           Case{"used sdp server * *:*", "a line begins with use, peers or log (used)"},
           Case{"use", "use is followed by sdp, tcp, both or try ()"},
           Case{"use udp server * *:*", "use is followed by sdp, tcp, both or try (udp)"},
           Case{"use sdp peer * *:*", "the role is server, listen, client or connect (peer)"},
           Case{"use sdp server", "a program is missing, or * ()"},
           Case{"use sdp server *", "no colon before the port ()"},
           Case{"use sdp server * 80", "no colon before the port (80)"},
           Case{"use sdp server * *:http", "no port (*:http)"},
           Case{"use sdp server * *:65536", "no port (*:65536)"},
           Case{"use sdp server * *:9-", "no port (*:9-)"},
           Case{"use sdp server * *:9-8", "the range of ports ends before it begins (*:9-8)"},
           Case{"use sdp server * 1.2.3:80", "no address (1.2.3:80)"},
           Case{"use sdp server * 1.2.3.4/33:80", "no length of a prefix (1.2.3.4/33:80)"},
           Case{"use sdp server * [::1:80", "no address ([::1:80)"},
           Case{"use sdp server * [1.2.3.4]:80", "no address of IPv6 ([1.2.3.4]:80)"},
           Case{"use sdp server * *:* fast", "no option: name=value (fast)"},
           Case{"use sdp server * *:* speed=9", "no such option (speed=9)"},
           Case{"use sdp server * *:* wait=600001",
                "no number of milliseconds up to 600000 (wait=600001)"},
           Case{"use sdp server * *:* buffer=1", "buffer is 4096 to 67108864 bytes (buffer=1)"},
           Case{"use sdp server * *:* fabric=verbs", "fabric is auto or qpip (fabric=verbs)"},
           Case{"peers", "peers is followed by addresses ()"},
           Case{"peers here", "no address (here)"},
           Case{"log min-level 10", "the level is 1 to 9 (10)"},
           Case{"log destination printer", "the destination is stderr, syslog or file (printer)"},
           Case{"log destination file", "the file's path is missing, or too long ()"},
           Case{"log quietly", "log knows destination and min-level (quietly)"},
       }) {
    const Read read =
        ReadFor(kIperf, "\n# above\n" + std::string(each.line) + "\nuse sdp client * *:7\n");
    ASSERT_EQ(read.errors.size(), 1u) << each.line;
    EXPECT_EQ(read.errors[0], "3: " + std::string(each.error));
    ASSERT_EQ(read.set.rules().size(), 1u) << each.line;
    EXPECT_EQ(read.set.rules()[0].line, 4u);
  }
}

// The file that libsdp comes with, but for its comments.
TEST(Rules, TheFileOfLibsdpIsReadAsItIs) {
  const Read read = ReadFor(kIperf,
                            "log min-level 9 destination file libsdp.log\n"
                            "use tcp    server      cupsd      *:*\n"
                            "use tcp    client      *    192.168.0.0/16:*\r\n"
                            "use tcp    connect     *    11.4.8.0/24:7001-8000\n"
                            "\tuse both  server  *  *:*\n"
                            "use both   client  * *:*\n");
  EXPECT_TRUE(read.errors.empty()) << read.errors[0];
  EXPECT_EQ(read.set.rules().size(), 4u);
  EXPECT_EQ(read.set.log().kind, LogTarget::Kind::kFile);
  EXPECT_STREQ(read.set.log().path.data(), "libsdp.log");
  EXPECT_EQ(VerdictOf(read.set, Role::kClient, At("192.168.3.4", 1)), "tcp");
  EXPECT_EQ(VerdictOf(read.set, Role::kServer, At("0.0.0.0", 22)), "both");
}

TEST(Rules, ASetMayMatchWhereARuleThatIsReachedSaysOtherThanTcp) {
  struct Case {
    const char* text;
    bool server, client;
  };
  for (const Case& each : {
           Case{"", false, false},
           Case{"use tcp server * *:*", false, false},
           Case{"use sdp server * *:80", true, false},
           Case{"use tcp server * *:80\nuse sdp server * *:*", true, false},
           Case{"use tcp client * *:*\nuse sdp client * *:*", false, false},
           Case{"use both client * *:*", false, true},
           Case{"use sdp client other *:*", false, false},
       }) {
    const Read read = ReadFor(kIperf, each.text);
    EXPECT_EQ(read.set.MayMatch(Role::kServer), each.server) << each.text;
    EXPECT_EQ(read.set.MayMatch(Role::kClient), each.client) << each.text;
  }
}

TEST(Rules, ASemicolonEndsALineOfTheEnvironment) {
  const std::string_view text = "use sdp server * *:1;use sdp client * *:2;wrong";
  const Read read = ReadFor(kIperf, text, true);
  EXPECT_EQ(read.set.rules().size(), 2u);
  EXPECT_TRUE(read.set.rules()[1].of_environment);
  EXPECT_EQ(read.set.rules()[1].line, 2u);
  ASSERT_EQ(read.errors.size(), 1u);
  EXPECT_EQ(read.errors[0].substr(0, 2), "3:");
}

TEST(Rules, PeersAreHostsAndNetworks) {
  const Read read = ReadFor(kIperf, "peers 10.1.0.0/16 ::1\npeers 192.168.0.9\n");
  EXPECT_TRUE(read.errors.empty());
  EXPECT_TRUE(read.set.IsPeer(At("10.1.255.3", 0).address));
  EXPECT_TRUE(read.set.IsPeer(At("::1", 0).address));
  EXPECT_TRUE(read.set.IsPeer(At("192.168.0.9", 0).address));
  EXPECT_FALSE(read.set.IsPeer(At("10.2.0.1", 0).address));
}

TEST(Rules, NoMoreAreTakenThanThereIsRoomFor) {
  std::string text;
  for (size_t i = 0; i <= RuleSet::kMaxRules; ++i) text += "use sdp server * *:80\n";
  for (size_t i = 0; i <= RuleSet::kMaxPeers; ++i) text += "peers 10.0.0.1\n";
  text += std::string(RuleParser::kMaxLineBytes + 1, 'x') + "\n" + std::string("a\0b\n", 4);
  const Read read = ReadFor(kIperf, text);
  EXPECT_EQ(read.set.rules().size(), RuleSet::kMaxRules);
  ASSERT_EQ(read.errors.size(), 4u);
  EXPECT_NE(read.errors[0].find("too many rules"), std::string::npos);
  EXPECT_NE(read.errors[1].find("too many peers"), std::string::npos);
  EXPECT_NE(read.errors[2].find("the line is too long"), std::string::npos);
  EXPECT_NE(read.errors[3].find("no text"), std::string::npos);
}

TEST(Rules, ALogTargetIsALevelAndAPlace) {
  LogTarget log;
  EXPECT_TRUE(ReadLogTarget("7:file:/tmp/a:b", log));
  EXPECT_EQ(log.kind, LogTarget::Kind::kFile);
  EXPECT_EQ(log.level, 7);
  EXPECT_STREQ(log.path.data(), "/tmp/a:b");
  EXPECT_TRUE(ReadLogTarget("1:stderr", log));
  EXPECT_EQ(log.kind, LogTarget::Kind::kStderr);
  for (const char* wrong : {"", "stderr", "0:stderr", "10:stderr", "x:syslog", "3:file:", "3:"}) {
    EXPECT_FALSE(ReadLogTarget(wrong, log)) << wrong;
  }
}

class RuleFile : public testing::Test {
 protected:
  RuleFile() { EXPECT_NE(mkdtemp(folder_.data()), nullptr); }
  ~RuleFile() override {
    unlink(path("file").c_str());
    rmdir(folder_.c_str());
  }
  std::string path(const char* name) const { return folder_ + "/" + name; }
  bool Reads(const std::string& path) {
    return RuleParser(kIperf, read_.set, Into(read_.errors)).ReadFile(path.c_str());
  }

  std::string folder_ = testing::TempDir() + "/rulesXXXXXX";
  Read read_;
};

TEST_F(RuleFile, IsReadWhereItIsOne) {
  std::ofstream(path("file")) << "use sdp server * *:*\nuse sdp client * *:*";
  EXPECT_TRUE(Reads(path("file")));
  EXPECT_EQ(read_.set.rules().size(), 2u);
}

TEST_F(RuleFile, ThatIsInstalledSaysTcpAlone) {
  EXPECT_TRUE(Reads("impl/package/etc/switch.conf"));
  EXPECT_TRUE(read_.errors.empty()) << read_.errors[0];
  EXPECT_FALSE(read_.set.MayMatch(Role::kServer) || read_.set.MayMatch(Role::kClient));
  const Program sshd = {.name = "sshd", .path = "/usr/sbin/sshd"};
  RuleSet set;
  EXPECT_TRUE(RuleParser(sshd, set, Into(read_.errors)).ReadFile("impl/package/etc/switch.conf"));
  EXPECT_EQ(VerdictOf(set, Role::kServer, At("0.0.0.0", 22)), "tcp");
}

TEST_F(RuleFile, ThatIsMissingOrAFolderOrAFifoIsNone) {
  EXPECT_FALSE(Reads(path("file")));
  EXPECT_FALSE(Reads(folder_));
  EXPECT_FALSE(Reads("/dev/zero"));
  ASSERT_EQ(mkfifo(path("file").c_str(), 0600), 0);
  EXPECT_FALSE(Reads(path("file")));
  EXPECT_TRUE(read_.set.rules().empty());
}

TEST_F(RuleFile, OfAGigabyteIsNone) {
  std::ofstream(path("file")) << "use sdp server * *:*\n";
  ASSERT_EQ(truncate(path("file").c_str(), 1 << 30), 0);
  EXPECT_FALSE(Reads(path("file")));
  EXPECT_TRUE(read_.set.rules().empty());
}

}  // namespace
}  // namespace esdp::switching
