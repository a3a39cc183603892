#include "impl/switch/rules/rule_parser.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "impl/switch/rules/fields.h"

namespace esdp::switching {
namespace {

constexpr size_t kMaxPattern = 255;

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v'; }

// The whole file in `to`, which has one byte more than it may have; -1 where that cannot be.
ssize_t ReadWhole(int fd, char* to, size_t room) {
  struct stat about = {};
  if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) return -1;
  size_t got = 0;
  while (got < room) {
    const ssize_t n = read(fd, to + got, room - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) return static_cast<ssize_t>(got);
    got += static_cast<size_t>(n);
  }
  return -1;
}

bool SetPath(std::string_view path, LogTarget& log) {
  if (path.empty() || path.size() >= log.path.size()) return false;
  log.path = {};
  std::copy(path.begin(), path.end(), log.path.begin());
  return true;
}

}  // namespace

// The words of a line, up to a comment.
class RuleParser::Words {
 public:
  explicit Words(std::string_view line) : rest_(line) {}

  // Empty at the end.
  std::string_view Next() {
    while (!rest_.empty() && IsSpace(rest_.front())) rest_.remove_prefix(1);
    if (!rest_.empty() && rest_.front() == '#') rest_ = {};
    size_t size = 0;
    while (size < rest_.size() && !IsSpace(rest_[size])) ++size;
    last_ = Part(rest_, 0, size);
    rest_.remove_prefix(size);
    return last_;
  }
  std::string_view last() const { return last_; }

 private:
  std::string_view rest_, last_;
};

bool Program::Matches(std::string_view pattern) const {
  std::array<char, kMaxPattern + 1> copy{};
  const std::string_view read = Part(pattern, 0, kMaxPattern);
  std::copy(read.begin(), read.end(), copy.begin());
  const bool of_path = pattern.find('/') != std::string_view::npos;
  return fnmatch(copy.data(), of_path ? path : name, 0) == 0;
}

void RuleParser::ReadText(std::string_view text, bool of_environment) {
  of_environment_ = of_environment;
  line_ = 0;
  while (!text.empty()) {
    ++line_;
    const size_t end = of_environment ? text.find_first_of(";\n") : text.find('\n');
    ReadLine(Part(text, 0, end));
    text = end == std::string_view::npos ? std::string_view() : Part(text, end + 1);
  }
}

bool RuleParser::ReadFile(const char* path) {
  // A FIFO would wait for a writer.
  const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) return false;
  constexpr size_t kRoom = kMaxFileBytes + 1;
  void* const room =
      mmap(nullptr, kRoom, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const ssize_t bytes = room == MAP_FAILED ? -1 : ReadWhole(fd, static_cast<char*>(room), kRoom);
  close(fd);
  if (bytes >= 0) ReadText({static_cast<const char*>(room), static_cast<size_t>(bytes)}, false);
  if (room != MAP_FAILED) munmap(room, kRoom);
  return bytes >= 0;
}

void RuleParser::ReadLine(std::string_view line) {
  const auto tell = [&](const char* reason, std::string_view text) {
    errors_.Tell(
        {.of_environment = of_environment_, .line = line_, .reason = reason, .text = text});
  };
  if (line.size() > kMaxLineBytes) return tell("the line is too long", Part(line, 0, 32));
  if (line.find('\0') != std::string_view::npos) return tell("no text", {});
  Words words(line);
  const std::string_view first = words.Next();
  if (first.empty()) return;
  const char* wrong = "a line begins with use, peers or log";
  if (first == "use") wrong = ReadUse(words);
  if (first == "peers") wrong = ReadPeers(words);
  if (first == "log") wrong = ReadLog(words);
  if (wrong != nullptr) tell(wrong, words.last());
}

const char* RuleParser::ReadUse(Words& words) {
  Rule rule;
  rule.of_environment = of_environment_;
  rule.line = line_;
  const std::string_view verdict = words.Next();
  if (verdict == "sdp") {
    rule.verdict = Verdict::kSdp;
  } else if (verdict == "both") {
    rule.verdict = Verdict::kBoth;
  } else if (verdict == "try") {
    rule.verdict = Verdict::kTry;
  } else if (verdict != "tcp") {
    return "use is followed by sdp, tcp, both or try";
  }
  const std::string_view role = words.Next();
  if (role == "client" || role == "connect") {
    rule.role = Role::kClient;
  } else if (role != "server" && role != "listen") {
    return "the role is server, listen, client or connect";
  }
  const std::string_view program = words.Next();
  if (program.empty()) return "a program is missing, or *";
  if (program.size() > kMaxPattern) return "the program's pattern is too long";
  if (const char* const wrong = ReadWhere(words.Next(), rule); wrong != nullptr) return wrong;
  while (!words.Next().empty()) {
    if (const char* const wrong = ReadOption(words.last(), rule.options); wrong != nullptr) {
      return wrong;
    }
  }
  if (!program_.Matches(program)) return nullptr;
  return set_.Add(rule) ? nullptr : "there are too many rules for this program";
}

const char* RuleParser::ReadPeers(Words& words) {
  if (words.Next().empty()) return "peers is followed by addresses";
  for (; !words.last().empty(); words.Next()) {
    Network network;
    if (const char* const wrong = ReadNetwork(words.last(), network); wrong != nullptr) {
      return wrong;
    }
    if (!set_.AddPeer(network)) return "there are too many peers";
  }
  return nullptr;
}

const char* RuleParser::ReadLog(Words& words) {
  LogTarget log = set_.log();
  while (!words.Next().empty()) {
    if (words.last() == "min-level") {
      uint64_t level = 0;
      if (!ReadNumber(words.Next(), 9, level) || level == 0) return "the level is 1 to 9";
      log.level = static_cast<uint8_t>(level);
      continue;
    }
    if (words.last() != "destination") return "log knows destination and min-level";
    const std::string_view where = words.Next();
    if (where == "stderr") {
      log.kind = LogTarget::Kind::kStderr;
    } else if (where == "syslog") {
      log.kind = LogTarget::Kind::kSyslog;
    } else if (where == "file") {
      log.kind = LogTarget::Kind::kFile;
      if (!SetPath(words.Next(), log)) return "the file's path is missing, or too long";
    } else {
      return "the destination is stderr, syslog or file";
    }
  }
  set_.SetLog(log);
  return nullptr;
}

bool ReadLogTarget(std::string_view text, LogTarget& log) {
  LogTarget read;
  const size_t colon = text.find(':');
  uint64_t level = 0;
  if (colon == std::string_view::npos || !ReadNumber(Part(text, 0, colon), 9, level)) return false;
  if (level == 0) return false;
  read.level = static_cast<uint8_t>(level);
  const std::string_view where = Part(text, colon + 1);
  if (where == "stderr") {
    read.kind = LogTarget::Kind::kStderr;
  } else if (where == "syslog") {
    read.kind = LogTarget::Kind::kSyslog;
  } else if (where.starts_with("file:") && SetPath(Part(where, 5), read)) {
    read.kind = LogTarget::Kind::kFile;
  } else {
    return false;
  }
  log = read;
  return true;
}

}  // namespace esdp::switching
