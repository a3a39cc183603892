#include "tools/esdp_perf/task.h"

#include <algorithm>
#include <array>

#include "absl/status/status.h"

namespace esdp_perf {
namespace {

constexpr std::array<const char*, 4> kModes = {"bandwidth", "latency", "rate", "file"};

absl::Status Refuse(const char* text) { return absl::InvalidArgumentError(text); }

absl::Status CheckMemory(const Task& task) {
  constexpr uint64_t kMemoryMax = uint64_t{1} << 34;
  if (task.size < 1 || task.size > (1 << 30)) return Refuse("--size: from 1 to 1G");
  if (task.receive_size > (1 << 30)) return Refuse("--receive-size: up to 1G");
  if (task.depth < 1 || task.depth > 4096) return Refuse("--depth: from 1 to 4096");
  if (task.batch < 1 || task.batch > task.depth) return Refuse("--batch: from 1 to --depth");
  if (task.receives > 4096) return Refuse("--receives: up to 4096");
  if (task.receives != 0 && task.receive_size == 0) {
    return Refuse(
        "--receives: with --receive-size; receives that are filled are as many as --depth");
  }
  if (task.connections < 1 || task.connections > 1024) {
    return Refuse("--connections: from 1 to 1024");
  }
  const uint64_t largest = std::max(task.size, task.receive_size);
  if (largest * std::max(task.depth, task.receives) * task.connections > kMemoryMax) {
    return Refuse(
        "--size times --depth or --receives times --connections: more than 16 GiB of buffers");
  }
  if (task.sources > task.depth) return Refuse("--sources: up to --depth");
  if (task.targets > ReceivesInFlight(task))
    return Refuse("--targets: up to the receives in flight");
  if (task.verify && task.sources != 0 && task.sources < task.depth) {
    return Refuse("--sources: as many as --depth where content is verified");
  }
  if (task.verify && task.targets != 0 && task.targets < ReceivesInFlight(task)) {
    return Refuse("--targets: as many as receives in flight where content is verified");
  }
  if (task.buffers < 3 || task.buffers > 1024) return Refuse("--buffers: from 3 to 1024");
  if (task.buffer_bytes != 0 && (task.buffer_bytes < 1024 || task.buffer_bytes > (1 << 20))) {
    return Refuse("--buffer-bytes: 0, or from 1K to 1M");
  }
  return absl::OkStatus();
}

absl::Status CheckWarmUp(const Task& task) {
  if (!(task.warm_up >= 0 && task.warm_up <= 86400)) {
    return Refuse("--warm-up: seconds, up to a day");
  }
  const bool timed = task.mode == Task::Mode::kBandwidth || task.mode == Task::Mode::kRate;
  if (task.warm_up > 0 && (!timed || task.bytes != 0)) {
    return Refuse("--warm-up: of bandwidth and rate runs that last --seconds");
  }
  return absl::OkStatus();
}

absl::Status CheckFile(const Task& task) {
  if (task.file.empty() || task.file.find_first_of("/\n") != std::string::npos ||
      task.file[0] == '.') {
    return Refuse("--file: the last part of its path must be a plain name");
  }
  if (task.connections != 1 || task.send == task.receive || task.verify) {
    return Refuse("--file: one connection, one direction, and its SHA-256 in place of --verify");
  }
  return absl::OkStatus();
}

}  // namespace

const char* NameOf(Task::Mode mode) { return kModes[static_cast<size_t>(mode)]; }

uint64_t ReceivesInFlight(const Task& task) {
  if (task.receive_size == 0) return task.depth;
  if (task.receives != 0) return task.receives;
  return std::clamp<uint64_t>((1 << 20) / task.receive_size, 1, task.depth);
}

Fields ToFields(const Task& task) {
  Fields fields;
  fields.Set("mode", NameOf(task.mode));
  fields.Set("send", uint64_t{task.send});
  fields.Set("receive", uint64_t{task.receive});
  fields.Set("size", task.size);
  fields.Set("receive_size", task.receive_size);
  fields.Set("depth", task.depth);
  fields.Set("receives", task.receives);
  fields.Set("connections", task.connections);
  fields.Set("batch", task.batch);
  fields.Set("sources", task.sources);
  fields.Set("targets", task.targets);
  fields.Set("bytes", task.bytes);
  fields.Set("seconds", task.seconds);
  fields.Set("warm_up", task.warm_up);
  fields.Set("threshold", task.threshold);
  fields.Set("manual", uint64_t{task.manual});
  fields.Set("spin", task.spin);
  fields.Set("pause", task.pause);
  fields.Set("region_key", uint64_t{task.region_key});
  fields.Set("foreign", uint64_t{task.foreign});
  fields.Set("buffers", task.buffers);
  fields.Set("buffer_bytes", task.buffer_bytes);
  fields.Set("congestion", task.congestion);
  fields.Set("checksum", uint64_t{task.checksum});
  fields.Set("lend_pages", uint64_t{task.lend_pages});
  fields.Set("verify", uint64_t{task.verify});
  fields.Set("seed", task.seed);
  fields.Set("file", task.file);
  return fields;
}

absl::StatusOr<Task> TaskFromFields(const Fields& fields) {
  Task task;
  size_t mode = 0;
  while (mode < kModes.size() && fields.Text("mode") != kModes[mode]) ++mode;
  if (mode == kModes.size()) return Refuse("the peer asks for a mode that is not known here");
  task.mode = static_cast<Task::Mode>(mode);
  task.send = fields.Number("send") != 0;
  task.receive = fields.Number("receive") != 0;
  task.size = fields.Number("size");
  task.receive_size = fields.Number("receive_size");
  task.depth = fields.Number("depth");
  task.receives = fields.Number("receives");
  task.connections = fields.Number("connections");
  task.batch = fields.Number("batch");
  task.sources = fields.Number("sources");
  task.targets = fields.Number("targets");
  task.bytes = fields.Number("bytes");
  task.seconds = fields.Real("seconds");
  task.warm_up = fields.Real("warm_up");
  task.threshold = fields.Number("threshold");
  task.manual = fields.Number("manual") != 0;
  task.spin = fields.Number("spin");
  task.pause = fields.Number("pause");
  task.region_key = fields.Number("region_key") != 0;
  task.foreign = fields.Number("foreign") != 0;
  task.buffers = fields.Number("buffers");
  task.buffer_bytes = fields.Number("buffer_bytes");
  task.congestion = fields.Text("congestion");
  task.checksum = fields.Number("checksum") != 0;
  task.lend_pages = fields.Number("lend_pages") != 0;
  task.verify = fields.Number("verify") != 0;
  task.seed = fields.Number("seed");
  task.file = fields.Text("file");
  if (absl::Status status = Check(task); !status.ok()) return status;
  return task;
}

absl::Status Check(const Task& task) {
  if (!task.send && !task.receive) return Refuse("--direction: send, receive or both");
  if (task.bytes == 0 && !(task.seconds > 0 && task.seconds <= 86400)) {
    return Refuse("--seconds: more than 0, up to a day");
  }
  if (absl::Status status = CheckWarmUp(task); !status.ok()) return status;
  if (task.pause > 60000) return Refuse("--pause: up to 60000 milliseconds");
  if (task.spin > 1000000) return Refuse("--spin: up to 1000000 microseconds");
  if (absl::Status status = CheckMemory(task); !status.ok()) return status;
  const bool latency = task.mode == Task::Mode::kLatency;
  if (latency && (task.connections != 1 || task.depth != 1)) {
    return Refuse("--mode latency: one connection of depth 1");
  }
  return task.mode == Task::Mode::kFile ? CheckFile(task) : absl::OkStatus();
}

}  // namespace esdp_perf
