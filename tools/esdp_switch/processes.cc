#include "tools/esdp_switch/processes.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>

namespace esdp_switch {
namespace {

namespace fs = std::filesystem;
using esdp::switching::Reason;

// By number.
constexpr std::array kReasons = {
    "",
    "no rule matches",
    "the rule says tcp",
    "the peer is not known to have the switch",
    "the first bytes were not SDP's",
    "the answer of SDP came too late",
    "it spoke first, and no request came in time",
    "a copy of it was passed on before it was known",
    "a sandbox forbids it",
    "no descriptors are left",
    "no memory is left, or too many epoll sets watched it",
    "the connection of SDP failed",
    "another process, of which this one was forked, moves it",
    "relayed",
    "it was bound to a port of its own",
};
constexpr std::array kStates = {"",      "tcp",       "setting up", "sdp", "relayed tcp",
                                "ended", "sdp local", "sdp verbs"};

template <typename Texts, typename Value>
const char* Named(const Texts& texts, Value value) {
  const auto place = static_cast<size_t>(value);
  return place < texts.size() ? texts[place] : "?";
}

std::string AddressText(const std::array<uint8_t, 16>& address, uint16_t port) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool mapped =
      std::all_of(address.begin(), address.begin() + 10, [](uint8_t b) { return b == 0; }) &&
      address[10] == 0xFF && address[11] == 0xFF;
  if (mapped) {
    inet_ntop(AF_INET, address.data() + 12, text.data(), text.size());
    return std::string(text.data()) + ":" + std::to_string(port);
  }
  inet_ntop(AF_INET6, address.data(), text.data(), text.size());
  return "[" + std::string(text.data()) + "]:" + std::to_string(port);
}

Shown ReadStatus(const std::string& path) {
  Shown shown;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return shown;
  shown.found = pread(fd, &shown.header, sizeof(shown.header), 0) == sizeof(shown.header) &&
                shown.header.magic == esdp::switching::kStatusMagic;
  const uint64_t count = std::min<uint64_t>(shown.header.made, esdp::switching::kStatusRecords);
  for (uint64_t i = 0; shown.found && i < count; ++i) {
    StatusRecord record;
    const auto at = static_cast<off_t>(sizeof(StatusHeader) + i * sizeof(record));
    if (pread(fd, &record, sizeof(record), at) != sizeof(record)) break;
    if ((record.generation & 1) == 0) shown.records.push_back(record);
  }
  close(fd);
  return shown;
}

}  // namespace

const char* TextOf(Reason reason) { return Named(kReasons, reason); }

std::vector<int> Processes() {
  std::vector<int> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    if (name.size() < 10 &&
        std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; })) {
      found.push_back(std::stoi(name));
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string ReadProc(int pid, const std::string& name) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string NameOf(int pid) {
  std::string name = ReadProc(pid, "comm");
  std::erase_if(name, [](char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0; });
  return name;
}

Shown StatusOf(int pid) {
  const std::string wanted = std::string("/memfd:") + esdp::switching::kStatusName;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd", error)) {
    std::error_code unread;
    const std::string target = fs::read_symlink(entry.path(), unread);
    if (unread || !target.starts_with(wanted)) continue;
    Shown shown = ReadStatus(entry.path());
    if (shown.found) return shown;
  }
  return {};
}

void PrintRecords(int pid, const Shown& shown) {
  const std::string name = NameOf(pid);
  for (const StatusRecord& each : shown.records) {
    if (each.shown == esdp::switching::Shown::kNothing) continue;
    const bool accepted = each.role == esdp::switching::Role::kServer;
    std::printf("%d\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64
                "\t%u %s\n",
                pid, name.c_str(), each.number, accepted ? "accepted" : "connected",
                AddressText(each.local, each.local_port).c_str(),
                AddressText(each.peer, each.peer_port).c_str(), Named(kVerdicts, each.verdict),
                Named(kStates, each.shown), each.sdp_sent, each.sdp_received, each.tcp_sent,
                each.tcp_received, static_cast<unsigned>(each.reason), TextOf(each.reason));
  }
}

}  // namespace esdp_switch
