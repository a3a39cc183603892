#include "tests/bench/paper/measure.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "tests/bench/paper/pair.h"

namespace esdp::paper {
namespace {

namespace testbed = fabric::sim::testbed;

// How long it is measured, once it is warm: so many bytes at least if they went as fast as the device
// can; and so many messages of each connection if they went half as fast.
constexpr double kLeastBytes = 20e6;
constexpr Duration kLeastTime = std::chrono::milliseconds(2);
constexpr double kMessages = 6;
constexpr double kLearning = 256;  // messages
constexpr double kLooking = 64;

double RateOf(const testbed::Parameters& parameters) {
  return std::min(parameters.device_bus_mb_s, parameters.link_bandwidth_mb_s);
}

Duration Least(const testbed::Parameters& parameters) {
  return std::max(kLeastTime, testbed::Microseconds(kLeastBytes / RateOf(parameters)));
}

Duration TimeOf(const testbed::Parameters& parameters, size_t connections, uint64_t bytes,
                double messages) {
  const double all = static_cast<double>(connections) * static_cast<double>(bytes) * messages;
  return testbed::Microseconds(2 * all / RateOf(parameters));
}

ContextOptions ReadsOnly() { return {.show_receives = false}; }

struct Window {
  Duration warm;
  Duration measured;
};

uint64_t BytesReceived(Pair& pair) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < pair.connections(); ++i) {
    const SocketStats stats = pair.server(i).socket.Stats();
    bytes += stats.bytes_received_copied + stats.bytes_received_zero_copy;
  }
  return bytes;
}

Point RunWindow(Pair& pair, const Window& window) {
  pair.RunUntil(pair.Now() + window.warm);
  const Duration busy = pair.Busy();
  const Duration charged = pair.Charged();
  const uint64_t bytes = BytesReceived(pair);
  pair.RunUntil(pair.Now() + window.measured);
  const auto nanoseconds = static_cast<double>(window.measured.count());
  return {
      .mb_s = static_cast<double>(BytesReceived(pair) - bytes) * 1000 / nanoseconds,
      .cpu_percent = 100 * static_cast<double>((pair.Busy() - busy).count()) / nanoseconds,
      .work_percent = 100 * static_cast<double>((pair.Charged() - charged).count()) / nanoseconds,
  };
}

}  // namespace

Point MeasureBandwidth(const testbed::Parameters& parameters, Mode mode, size_t connections,
                       uint64_t bytes) {
  std::vector<std::unique_ptr<Caller>> callers;  // until the last of their operations has ended
  Pair pair(parameters, Stack::kKernel, ReadsOnly(), SocketOptionsOf(parameters, mode),
            connections);
  for (size_t i = 0; i < connections; ++i) {
    callers.push_back(std::make_unique<Caller>(pair.client(i), mode, bytes, connections));
    callers.back()->SendForever();
    callers.push_back(std::make_unique<Caller>(pair.server(i), mode, bytes, connections));
    callers.back()->ReceiveForever();
  }
  return RunWindow(
      pair, {.warm = Least(parameters) / 3 + TimeOf(parameters, connections, bytes, 2),
             .measured = Least(parameters) + TimeOf(parameters, connections, bytes, kMessages)});
}

Point MeasureLatency(const testbed::Parameters& parameters, Mode mode, uint64_t bytes) {
  std::optional<Caller> asks;
  std::optional<Caller> answers;
  Pair pair(parameters, Stack::kKernel, ReadsOnly(), SocketOptionsOf(parameters, mode), 1);
  asks.emplace(pair.client(), mode, bytes, 1);
  answers.emplace(pair.server(), mode, bytes, 1);
  answers->AnswerForever();
  asks->AskForever();
  const Duration warm = Least(parameters) / 3 + TimeOf(parameters, 2, bytes, 4);
  asks->answers().Begin(pair.Now() + warm);
  Point point = RunWindow(
      pair,
      {.warm = warm, .measured = Least(parameters) + TimeOf(parameters, 2, bytes, 4 * kMessages)});
  point.latency_us = asks->answers().MicrosecondsEach() / 2;
  return point;
}

Point MeasureAsynchronous(const testbed::Parameters& parameters, Means means, const Habit& habit,
                          uint64_t bytes) {
  std::optional<AsynchronousCaller> sender;
  std::optional<AsynchronousCaller> receiver;
  Pair pair(parameters, Stack::kProcess, ContextOptionsOf(means),
            SocketOptionsOf(parameters, means), 1);
  Habit receives = habit;
  receives.outstanding = std::max<size_t>(4, 2 * habit.outstanding);
  receives.pause_us = 0;
  sender.emplace(pair.client(), true, habit, bytes);
  receiver.emplace(pair.server(), false, receives, bytes);
  receiver->Start();
  sender->Start();
  // What is learned takes many sends.
  const auto outstanding = static_cast<double>(habit.outstanding);
  const Duration warm =
      Least(parameters) / 3 +
      TimeOf(parameters, 1, bytes, means == Means::kAdaptive ? kLearning : 2 * outstanding);
  pair.RunUntil(pair.Now() + warm);
  sender->Begin();
  // Now and then it looks at the other way, for long enough to see that these looks cost little.
  const double messages = means == Means::kAdaptive ? kLooking : kMessages;
  Point point = RunWindow(
      pair,
      {.warm = Duration(0),
       .measured = Least(parameters) + TimeOf(parameters, habit.outstanding, bytes, messages)});
  point.latency_us = sender->MicrosecondsEach();
  return point;
}

}  // namespace esdp::paper
