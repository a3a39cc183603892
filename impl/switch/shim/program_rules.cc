#include "impl/switch/shim/program_rules.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <syslog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "impl/switch/libc_calls.h"
#include "impl/switch/rules/rule_parser.h"
#include "impl/switch/shim/by_number.h"

namespace esdp::switching {

constinit RuleSet rules;

namespace {

constexpr char kFile[] = "/etc/esdp/switch.conf";
// Beside the library: what was installed under a prefix.
constexpr std::string_view kBeside = "/../etc/esdp/switch.conf";
constexpr size_t kMaxPath = 1024, kMaxMessage = 512;

void TellError(void* /*to*/, const RuleError& error) {
  std::array<char, kMaxMessage> text;
  const auto shown = static_cast<int>(std::min<size_t>(error.text.size(), 64));
  (void)std::snprintf(text.data(), text.size(), "%s, line %u: %s: '%.*s'",
                      error.of_environment ? "ESDP_SWITCH_RULES" : "rule file", error.line,
                      error.reason, shown, error.text.data());
  Log(9, text.data());
}

bool BesideLibrary(std::array<char, kMaxPath>& path) {
  Dl_info about = {};
  if (dladdr(kFile, &about) == 0 || about.dli_fname == nullptr) return false;
  const std::string_view library = about.dli_fname;
  const size_t slash = library.rfind('/');
  if (slash == std::string_view::npos || slash + kBeside.size() >= path.size()) return false;
  char* const end = std::copy_n(library.data(), slash, path.data());
  *std::copy(kBeside.begin(), kBeside.end(), end) = 0;
  return true;
}

void ReadFile(RuleParser& parser, const char* path) {
  std::array<char, kMaxPath> beside;
  if (path == nullptr) path = access(kFile, F_OK) == 0 ? kFile : nullptr;
  if (path == nullptr && BesideLibrary(beside)) path = beside.data();
  if (path == nullptr || parser.ReadFile(path)) return;
  if (errno == ENOENT && path == beside.data()) return;
  std::array<char, kMaxMessage> text;
  (void)std::snprintf(text.data(), text.size(), "the rule file %.400s cannot be read", path);
  Log(9, text.data());
}

void WriteLine(const char* path, const char* line, size_t bytes) {
  constexpr int kFlags = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
  // Past what is interposed, which may want the lock that who logs has.
  const auto fd = static_cast<int>(by_number.get()(SYS_openat, AT_FDCWD, path, kFlags, 0600));
  if (fd < 0) return;
  (void)!libc::real.write.get()(fd, line, bytes);
  (void)libc::real.close.get()(fd);
}

void SetModeOfAll(const char* mode) {
  if (std::strcmp(mode, "relay") == 0) return rules.SetMode(Mode::kRelay);
  if (std::strcmp(mode, "direct") == 0) return rules.SetMode(Mode::kDirect);
  Log(9, "ESDP_SWITCH_MODE is relay or direct");
}

}  // namespace

void ReadProgramRules(const Environment& environment, const char* argv0) {
  LogTarget target;
  if (environment.log != nullptr && ReadLogTarget(environment.log, target)) rules.SetLog(target);
  const LogTarget of_environment = rules.log();
  std::array<char, kMaxPath> path{};
  (void)!readlink("/proc/self/exe", path.data(), path.size() - 1);
  const char* const slash = std::strrchr(argv0, '/');
  const Program program = {.name = slash != nullptr ? slash + 1 : argv0, .path = path.data()};
  RuleParser parser(program, rules, {.tell = TellError});
  if (environment.rules != nullptr) parser.ReadText(environment.rules, true);
  ReadFile(parser, environment.config);
  if (environment.mode != nullptr) SetModeOfAll(environment.mode);
  if (of_environment.kind != LogTarget::Kind::kNone) rules.SetLog(of_environment);
}

void Log(int level, const char* text) {
  const LogTarget& log = rules.log();
  if (log.kind == LogTarget::Kind::kNone || level < log.level) return;
  const int before = errno;
  std::array<char, kMaxMessage + 32> line;
  const int bytes =
      std::snprintf(line.data(), line.size(), "esdp-switch[%d]: %s\n", getpid(), text);
  const size_t length = std::min(static_cast<size_t>(bytes), line.size() - 1);
  if (log.kind == LogTarget::Kind::kStderr) {
    (void)!libc::real.write.get()(STDERR_FILENO, line.data(), length);
  } else if (log.kind == LogTarget::Kind::kSyslog) {
    syslog(level >= 9 ? LOG_ERR : LOG_INFO, "esdp-switch: %s", text);
  } else {
    WriteLine(log.path.data(), line.data(), length);
  }
  errno = before;
}

bool ToEndpoint(const Name& name, socklen_t bytes, Endpoint& to) {
  if (bytes >= sizeof(sockaddr_in) && name.any.sa_family == AF_INET) {
    to = {.port = ntohs(name.ipv4.sin_port)};
    to.address[10] = to.address[11] = 0xFF;
    const auto* const from = reinterpret_cast<const uint8_t*>(&name.ipv4.sin_addr);
    std::copy_n(from, 4, to.address.data() + 12);
    return true;
  }
  if (bytes >= sizeof(sockaddr_in6) && name.any.sa_family == AF_INET6) {
    to = {.port = ntohs(name.ipv6.sin6_port)};
    std::copy_n(name.ipv6.sin6_addr.s6_addr, 16, to.address.data());
    return true;
  }
  return false;
}

}  // namespace esdp::switching
