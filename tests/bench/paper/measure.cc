#include "tests/bench/paper/measure.h"

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "tests/bench/paper/pair.h"

namespace esdp::paper {
namespace {

namespace testbed = fabric::sim::testbed;
using std::chrono::microseconds;

// How long it is measured, once it is warm: so long at least, and so many messages of each
// connection if they went at this rate together.
constexpr Duration kLeast = std::chrono::milliseconds(15);
constexpr double kMessages = 6;
constexpr double kRateMbS = 700;

Duration TimeOf(size_t connections, uint64_t bytes, double messages) {
  const double all = static_cast<double>(connections) * static_cast<double>(bytes) * messages;
  return testbed::Microseconds(all / kRateMbS);
}

ContextOptions ReadsOnly() { return {.show_receives = false}; }

struct Window {
  Duration warm;
  Duration measured;
};

uint64_t BytesReceived(const Pair::Side& side) {
  uint64_t bytes = 0;
  for (const Socket& socket : side.sockets) {
    const SocketStats stats = socket.Stats();
    bytes += stats.bytes_received_copied + stats.bytes_received_zero_copy;
  }
  return bytes;
}

Point RunWindow(Pair& pair, const Window& window) {
  pair.RunUntil(pair.Now() + window.warm);
  const Duration busy = pair.Busy();
  const uint64_t bytes = BytesReceived(pair.server());
  pair.RunUntil(pair.Now() + window.measured);
  const auto nanoseconds = static_cast<double>(window.measured.count());
  return {
      .mb_s = static_cast<double>(BytesReceived(pair.server()) - bytes) * 1000 / nanoseconds,
      .cpu_percent = 100 * static_cast<double>((pair.Busy() - busy).count()) / nanoseconds,
  };
}

}  // namespace

Point MeasureBandwidth(const testbed::Parameters& parameters, Mode mode, size_t connections,
                       uint64_t bytes) {
  std::vector<std::unique_ptr<Caller>> callers;  // until the last of their operations has ended
  Pair pair(parameters, Stack::kKernel, ReadsOnly(), SocketOptionsOf(parameters, mode),
            connections);
  for (size_t i = 0; i < connections; ++i) {
    callers.push_back(std::make_unique<Caller>(pair.client(), i, mode, bytes, connections));
    callers.back()->SendForever();
    callers.push_back(std::make_unique<Caller>(pair.server(), i, mode, bytes, connections));
    callers.back()->ReceiveForever();
  }
  return RunWindow(pair, {.warm = kLeast / 3 + TimeOf(connections, bytes, 2),
                          .measured = kLeast + TimeOf(connections, bytes, kMessages)});
}

Point MeasureLatency(const testbed::Parameters& parameters, Mode mode, uint64_t bytes) {
  std::optional<Caller> asks;
  std::optional<Caller> answers;
  Pair pair(parameters, Stack::kKernel, ReadsOnly(), SocketOptionsOf(parameters, mode), 1);
  asks.emplace(pair.client(), 0, mode, bytes, 1);
  answers.emplace(pair.server(), 0, mode, bytes, 1);
  answers->AnswerForever();
  asks->AskForever();
  const Duration warm = kLeast / 3 + TimeOf(2, bytes, 4);
  asks->answers().Begin(pair.Now() + warm);
  Point point =
      RunWindow(pair, {.warm = warm, .measured = kLeast + TimeOf(2, bytes, 4 * kMessages)});
  point.latency_us = asks->answers().MicrosecondsEach() / 2;
  return point;
}

}  // namespace esdp::paper
