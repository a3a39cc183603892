#include "tools/esdp_perf/options.h"

#include <charconv>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace esdp_perf {

const char kUsage[] =
    R"(esdp_perf measures SDP connections between two processes, or on a simulated network.

  esdp_perf --server [--listen ADDRESS] [--port PORT] [--folder FOLDER] [--sessions N]
  esdp_perf --connect ADDRESS --port PORT [what to measure]
  esdp_perf --fabric sim --testbed FILE [what to measure]

Server
  --listen ADDRESS     127.0.0.1 unless told
  --port PORT          0, the default: any free port; the server prints it
  --folder FOLDER      serve and store files there; without it file runs are refused
  --sessions N         end after N runs; 0, the default: never
  --fabric NAME        qpip (default), or another that Context::Open knows; both must be able to meet

On a network that is not there, in virtual time
  --testbed FILE       two hosts, their devices and the link, in numbers; with --fabric sim. Both
                       ends are in this process

What to measure (the client says, the server follows)
  --mode MODE          bandwidth (default), latency (ping-pong), rate (small messages)
  --file PATH          send or fetch a file and compare its SHA-256 at the far end; both: send it,
                       then fetch it to PATH.fetched
  --direction WAY      send (default), receive or both, as the client sees it
  --size BYTES         of one send: 1M; latency and rate: 64. K, M and G are powers of 1024
  --receive-size BYTES of one receive; 0: as --size, filled whole. rate: 64K
  --depth N            operations in flight: 8; latency: 1; rate: 512
  --batch N            sends that are posted together: 1
  --receives N         receives in flight with --receive-size: a megabyte of them, up to --depth
  --connections N      1
  --sources N          pieces of memory that sends take in turn: as many as --depth; 1: the same
                       one again and again, which stays in the processor's cache
  --targets N          the same for receives: as many as are in flight
  --path PATH          copy, zcopy, or threshold (default); several, with commas: one run each
  --threshold BYTES    zero-copy from this size on, with --path threshold: 64K
  --seconds S          how long: 5; simulated: 0.02
  --warm-up S          run for so long before, and leave that out of the figures: 0
  --bytes BYTES        how much for each connection and direction, in place of --seconds
  --progress WHO       thread (default), or manual: the calling thread, which looks without end
  --spin MICROSECONDS  how long a progress thread polls before it sleeps: 0. Simulated: the thread
                       that measures moves the protocol too, and it is that which polls
  --pause MILLISECONDS between the connection and the first send, in which nobody waits: 0
  --buffers N          of a connection, to receive messages in: 16
  --buffer-bytes BYTES payload of each, from the first to the last; 0: as the library has them
  --region-key         show the peer whole regions for as long as they live, not the range of each
                       operation for its time: what programs written to verbs do
  --foreign            register memory of this program's own; without it the library allocates it, and
                       local lets the peer map it
  --verify             fill each byte from a pattern and check it at the far end
  --seed N             of the pattern
  --congestion NAME    TCP's congestion control on both sides; the system's unless told
  --checksum           ask the fabric for an end-to-end checksum
  --lend-pages         qpip: lend the memory of zero-copy sends to the system instead of having it
                       copied into the socket

Output
  --json               one JSON object
  --quiet              no line per second
)";

namespace {

absl::Status Refuse(const std::string& text) { return absl::InvalidArgumentError(text); }

absl::StatusOr<uint64_t> ParseNumber(const std::string& text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    return Refuse("'" + text + "' is not a number");
  }
  return number;
}

// What the command line says, before defaults that hang on the mode are filled in.
class Parser {
 public:
  Parser() {
    Number("--port", [this](uint64_t n) {
      if (n > 65535) return Refuse("--port: up to 65535");
      options_.port = static_cast<uint16_t>(n);
      return absl::OkStatus();
    });
    Number("--sessions", Into(options_.sessions));
    Number("--size", Into(size_));
    Number("--receive-size", Into(receive_size_));
    Number("--depth", Into(depth_));
    Number("--receives", Into(task_.receives));
    Number("--connections", Into(task_.connections));
    Number("--batch", Into(task_.batch));
    Number("--sources", Into(task_.sources));
    Number("--targets", Into(task_.targets));
    Number("--threshold", Into(task_.threshold));
    Number("--bytes", Into(task_.bytes));
    Number("--spin", Into(task_.spin));
    Number("--pause", Into(task_.pause));
    Number("--buffers", Into(task_.buffers));
    Number("--buffer-bytes", Into(task_.buffer_bytes));
    Number("--seed", Into(task_.seed));
    Text("--listen", Into(options_.address));
    Text("--connect", Into(options_.address));
    Text("--folder", Into(options_.folder));
    Text("--file", Into(options_.file));
    Text("--testbed", Into(options_.testbed));
    Text("--fabric", Into(task_.fabric));
    Text("--congestion", Into(task_.congestion));
    Text("--mode", [this](const std::string& value) { return SetMode(value); });
    Text("--direction", [this](const std::string& value) { return SetDirection(value); });
    Text("--path", [this](const std::string& value) { return SetPath(value); });
    Text("--progress", [this](const std::string& value) { return SetProgress(value); });
    Real("--seconds", seconds_);
    Real("--warm-up", task_.warm_up);
    flags_ = {{"--server", &options_.server},      {"--help", &options_.help},
              {"--json", &options_.json},          {"--quiet", &options_.quiet},
              {"--verify", &task_.verify},         {"--checksum", &task_.checksum},
              {"--lend-pages", &task_.lend_pages}, {"--region-key", &task_.region_key},
              {"--foreign", &task_.foreign}};
  }

  absl::Status Take(const std::vector<std::string>& arguments) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      const std::string& name = arguments[i];
      if (const auto flag = flags_.find(name); flag != flags_.end()) {
        *flag->second = true;
        continue;
      }
      const auto taker = takers_.find(name);
      if (taker == takers_.end()) return Refuse("'" + name + "' is no option; see --help");
      if (++i == arguments.size()) return Refuse(name + " wants a value");
      if (absl::Status status = taker->second(arguments[i]); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // Fills in what hangs on the mode, and draws up a task for each path and, of a file, each way.
  Options Finish() {
    if (!options_.file.empty()) {
      task_.mode = Task::Mode::kFile;
      task_.file = options_.file.substr(options_.file.find_last_of('/') + 1);
    }
    const bool latency = task_.mode == Task::Mode::kLatency;
    const bool rate = task_.mode == Task::Mode::kRate;
    task_.size = size_.value_or(latency || rate ? 64 : 1 << 20);
    task_.depth = depth_.value_or(latency ? 1 : rate ? 512 : 8);
    task_.receive_size = receive_size_.value_or(rate ? 64 * 1024 : 0);
    task_.seconds = seconds_.value_or(options_.testbed.empty() ? 5 : kSimulatedSeconds);
    for (const uint64_t threshold : thresholds_) AddTasks(threshold);
    has_peer_ = options_.server || !options_.address.empty() || options_.port != 0;
    if (options_.address.empty()) options_.address = "127.0.0.1";
    return options_;
  }

  // What needs processes, files or a network that are there is not simulated.
  absl::Status CheckSimulated() const {
    const bool simulated = task_.fabric == "sim" || task_.fabric.starts_with("sim:");
    if (options_.testbed.empty()) {
      return simulated ? Refuse(
                             "--fabric sim: with --testbed FILE, which says what anything takes "
                             "there; those of the source are in tools/testbed")
                       : absl::OkStatus();
    }
    if (task_.fabric != "sim") {
      return Refuse("--testbed: with --fabric sim, where chance has no part and there is no seed");
    }
    if (has_peer_) {
      return Refuse(
          "--fabric sim: both ends are in this process; leave --server, --listen, "
          "--connect and --port out");
    }
    if (task_.mode == Task::Mode::kFile || !options_.folder.empty()) {
      return Refuse(
          "--file, --folder: a simulated host has no files; run a server and a client on "
          "another fabric");
    }
    if (!task_.congestion.empty() || task_.checksum || task_.lend_pages) {
      return Refuse(
          "--congestion, --checksum, --lend-pages: of fabrics over TCP; a test-bed has "
          "none");
    }
    return absl::OkStatus();
  }

 private:
  using Taker = std::function<absl::Status(const std::string&)>;

  void Text(const std::string& name, Taker taker) { takers_[name] = std::move(taker); }
  void Number(const std::string& name, std::function<absl::Status(uint64_t)> taker) {
    takers_[name] = [name, taker = std::move(taker)](const std::string& value) -> absl::Status {
      const absl::StatusOr<uint64_t> number = ParseSize(value);
      return number.ok() ? taker(*number) : Refuse(name + ": '" + value + "' is no number");
    };
  }
  template <typename Target>
  void Real(const std::string& name, Target& target) {
    takers_[name] = [name, &target](const std::string& value) {
      char* end = nullptr;
      target = std::strtod(value.c_str(), &end);
      return *end == '\0' ? absl::OkStatus() : Refuse(name + ": '" + value + "' is no number");
    };
  }
  static std::function<absl::Status(uint64_t)> Into(uint64_t& target) {
    return [&target](uint64_t value) { return target = value, absl::OkStatus(); };
  }
  static std::function<absl::Status(uint64_t)> Into(std::optional<uint64_t>& target) {
    return [&target](uint64_t value) { return target = value, absl::OkStatus(); };
  }
  static Taker Into(std::string& target) {
    return [&target](const std::string& value) { return target = value, absl::OkStatus(); };
  }

  absl::Status SetMode(const std::string& value) {
    for (Task::Mode mode : {Task::Mode::kBandwidth, Task::Mode::kLatency, Task::Mode::kRate}) {
      if (value == NameOf(mode)) return task_.mode = mode, absl::OkStatus();
    }
    return Refuse("--mode: bandwidth, latency or rate");
  }
  absl::Status SetDirection(const std::string& value) {
    if (value != "send" && value != "receive" && value != "both") {
      return Refuse("--direction: send, receive or both");
    }
    task_.send = value != "receive";
    task_.receive = value != "send";
    return absl::OkStatus();
  }
  absl::Status SetPath(const std::string& value) {
    thresholds_.clear();
    std::istringstream names(value);
    for (std::string name; std::getline(names, name, ',');) {
      if (name != "copy" && name != "zcopy" && name != "threshold") {
        return Refuse("--path: copy, zcopy or threshold");
      }
      thresholds_.push_back(name == "copy" ? kNever : name == "zcopy" ? 0 : kByThreshold);
    }
    return thresholds_.empty() ? Refuse("--path: copy, zcopy or threshold") : absl::OkStatus();
  }
  absl::Status SetProgress(const std::string& value) {
    task_.manual = value == "manual";
    return value == "manual" || value == "thread" ? absl::OkStatus()
                                                  : Refuse("--progress: thread or manual");
  }

  void AddTasks(uint64_t threshold) {
    Task task = task_;
    if (threshold != kByThreshold) task.threshold = threshold;
    const bool there_and_back = task.mode == Task::Mode::kFile && task.send && task.receive;
    if (there_and_back) task.receive = false;
    options_.tasks.push_back(task);
    if (!there_and_back) return;
    std::swap(task.send, task.receive);
    options_.tasks.push_back(task);
  }

  static constexpr uint64_t kByThreshold = kNever - 1;
  static constexpr double kSimulatedSeconds = 0.02;

  Options options_;
  Task task_;
  std::optional<uint64_t> size_, depth_, receive_size_;
  std::optional<double> seconds_;
  bool has_peer_ = false;
  std::vector<uint64_t> thresholds_ = {kByThreshold};
  std::map<std::string, Taker> takers_;
  std::map<std::string, bool*> flags_;
};

}  // namespace

absl::StatusOr<uint64_t> ParseSize(const std::string& text) {
  if (text.empty()) return ParseNumber(text);
  const size_t unit = std::string("KMG").find(text.back());
  if (unit == std::string::npos) return ParseNumber(text);
  absl::StatusOr<uint64_t> number = ParseNumber(text.substr(0, text.size() - 1));
  const uint64_t shift = 10 * (unit + 1);
  if (number.ok() && *number >> (64 - shift) != 0) return Refuse("'" + text + "' is too large");
  if (number.ok()) *number <<= shift;
  return number;
}

absl::StatusOr<Options> ParseOptions(int argc, const char* const* argv) {
  Parser parser;
  absl::Status status = parser.Take(std::vector<std::string>(argv + 1, argv + argc));
  if (!status.ok()) return status;
  Options options = parser.Finish();
  if (options.help) return options;
  if (status = parser.CheckSimulated(); !status.ok()) return status;
  if (options.server) return options;
  if (options.port == 0 && options.testbed.empty())
    return Refuse("--port: the one that the server printed");
  for (const Task& task : options.tasks) {
    if (status = Check(task); !status.ok()) return status;
  }
  return options;
}

}  // namespace esdp_perf
