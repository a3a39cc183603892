#include "tools/esdp_perf/report.h"

#include <cstdarg>
#include <cstdio>

namespace esdp_perf {
namespace {

std::string Format(const char* format, ...) __attribute__((format(printf, 1, 2)));

std::string Format(const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  return text;
}

double Over(double value, double divisor) { return divisor > 0 ? value / divisor : 0; }
double Real(uint64_t number) { return static_cast<double>(number); }

// What follows from a Result.
struct Figures {
  explicit Figures(const Result& result) {
    const Outcome& here = result.client;
    const Outcome& far = result.server;
    bytes = here.bytes_received + far.bytes_received;
    zero_copy = here.bytes_zero_copy + far.bytes_zero_copy;
    rate = Over(Real(far.bytes_received), far.receive_seconds) +
           Over(Real(here.bytes_received), here.receive_seconds);
    messages = rate / Real(result.task.size);
    seconds =
        here.receive_seconds > far.receive_seconds ? here.receive_seconds : far.receive_seconds;
    const double gigabytes = Real(bytes) / 1e9;
    cpu_here = Over(here.cpu_seconds, gigabytes);
    cpu_far = Over(far.cpu_seconds, gigabytes);
    copies_here = Over(Real(here.copied_bytes), Real(bytes));
    copies_far = Over(Real(far.copied_bytes), Real(bytes));
  }

  uint64_t bytes, zero_copy;
  double rate, messages, seconds, cpu_here, cpu_far, copies_here, copies_far;
};

const char* Way(const Task& task) {
  return task.send && task.receive ? "both" : task.send ? "send" : "receive";
}

std::string Threshold(const Task& task) {
  if (task.threshold == kNever) return "copy";
  return task.threshold == 0 ? "zcopy"
                             : Format("from %llu", static_cast<unsigned long long>(task.threshold));
}

std::string PathTaken(const Figures& figures) {
  const double share = Over(100 * Real(figures.zero_copy), Real(figures.bytes));
  if (figures.zero_copy == figures.bytes) return "zero-copy";
  return figures.zero_copy == 0 ? "copied" : Format("%.2f %% zero-copy", share);
}

double Micros(uint64_t nanoseconds) { return Real(nanoseconds) / 1000; }

struct Share {
  const char* name;
  double value;
};
constexpr Share kShares[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}};

std::string LatencyTable(const Result& result) {
  const Histogram& times = result.round_trips;
  std::string text = "round trip, us: " + Format("min %.2f", Micros(times.least()));
  for (const Share& share : kShares) {
    text += Format("  %s %.2f", share.name, Micros(times.Percentile(share.value)));
  }
  return text + Format("  max %.2f  (%llu samples)\n", Micros(times.most()),
                       static_cast<unsigned long long>(times.count()));
}

// What belongs to a run and does not fit its line.
std::string Note(const Result& result) {
  std::string text;
  if (result.round_trips.count() > 0) text += LatencyTable(result);
  if (result.task.verify) text += "every byte was checked\n";
  if (!result.server.sha256.empty()) {
    text += "SHA-256 equal on both sides: " + result.server.sha256 + "  " + result.task.file + "\n";
  }
  return text;
}

std::string LatencyJson(const Result& result) {
  const Histogram& times = result.round_trips;
  if (times.count() == 0) return "null";
  std::string text = Format("{\"min\":%.3f", Micros(times.least()));
  for (const Share& share : kShares) {
    text += Format(",\"%s\":%.3f", share.name, Micros(times.Percentile(share.value)));
  }
  return text + Format(",\"max\":%.3f,\"samples\":%llu}", Micros(times.most()),
                       static_cast<unsigned long long>(times.count()));
}

std::string JsonOf(const Result& result) {
  const Task& task = result.task;
  const Figures figures(result);
  const auto whole = [](uint64_t n) { return static_cast<unsigned long long>(n); };
  std::string text = Format("{\"mode\":\"%s\",\"direction\":\"%s\",\"path\":\"%s\",",
                            NameOf(task.mode), Way(task), Threshold(task).c_str());
  text += Format("\"transport\":\"%s\",\"progress\":\"%s\",", result.client.transport.c_str(),
                 task.manual ? "manual" : "thread");
  text += Format("\"size\":%llu,\"depth\":%llu,\"connections\":%llu,", whole(task.size),
                 whole(task.depth), whole(task.connections));
  text += Format("\"seconds\":%.6f,\"bytes\":%llu,\"zero_copy_bytes\":%llu,", figures.seconds,
                 whole(figures.bytes), whole(figures.zero_copy));
  text += Format("\"bytes_per_second\":%.0f,\"messages_per_second\":%.0f,", figures.rate,
                 figures.messages);
  text += Format("\"cpu_seconds_per_gb\":{\"client\":%.4f,\"server\":%.4f},", figures.cpu_here,
                 figures.cpu_far);
  text += Format("\"copies_per_byte\":{\"client\":%.6f,\"server\":%.6f},", figures.copies_here,
                 figures.copies_far);
  text += Format("\"verified\":%s,\"sha256\":\"%s\",", task.verify ? "true" : "false",
                 result.server.sha256.c_str());
  return text + "\"latency_us\":" + LatencyJson(result) + "}";
}

}  // namespace

std::string Table(const std::vector<Result>& results) {
  std::string text =
      Format("%-9s %-7s %-9s %9s %10s %9s   %-15s %-15s %s\n", "mode", "way", "asked", "MiB",
             "MB/s", "M msg/s", "CPU s/GB", "copies/byte", "path taken");
  text += Format("%58s   %-15s %-15s\n", "", "here    far", "here    far");
  for (const Result& result : results) {
    const Figures figures(result);
    text += Format("%-9s %-7s %-9s %9.1f %10.1f %9.3f   %-7.3f %-7.3f %-7.2f %-7.2f %s\n",
                   NameOf(result.task.mode), Way(result.task), Threshold(result.task).c_str(),
                   Real(figures.bytes) / (1 << 20), figures.rate / 1e6, figures.messages / 1e6,
                   figures.cpu_here, figures.cpu_far, figures.copies_here, figures.copies_far,
                   PathTaken(figures).c_str());
  }
  std::string said;  // the same is not said twice
  for (const Result& result : results) {
    if (const std::string note = Note(result); note != said) text += said = note;
  }
  return text;
}

std::string Json(const std::vector<Result>& results) {
  if (results.size() == 1) return JsonOf(results[0]) + "\n";
  std::string text = "[";
  for (const Result& result : results) text += (text.size() > 1 ? ",\n " : "") + JsonOf(result);
  return text + "]\n";
}

}  // namespace esdp_perf
