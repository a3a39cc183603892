#include "tests/bench/paper/goals.h"

#include <algorithm>
#include <utility>

#include "tests/bench/paper/text.h"

namespace esdp::paper {
namespace {

constexpr bool kSpins = true;
constexpr size_t kMost = 8;  // operations or sockets
constexpr uint64_t kCompared[] = {8 * kKib, 16 * kKib, 32 * kKib, 64 * kKib};

constexpr size_t kOperations[] = {2, 4, kMost};

// The bandwidth of one socket with n operations beside n sockets that block: the worst of all.
double WorstBesideSockets(Results& r, bool spins) {
  double worst = 1e9;
  for (const size_t n : kOperations) {
    for (const uint64_t size : kCompared) {
      const double one = r.Asynchronous(Means::kRead, n, spins, size).mb_s;
      worst = std::min(worst, one / r.Bandwidth(Mode::kZeroCopy, n, size).mb_s);
    }
  }
  return worst;
}

double MicrosecondsToWake(const fabric::sim::testbed::Parameters& parameters) {
  return parameters.device_interrupt_us + 2 * parameters.kernel_switch_us +
         parameters.kernel_system_call_us;
}

Share CompareCpuAt(Results& r, size_t operations, uint64_t bytes) {
  const Point& sockets = r.Bandwidth(Mode::kZeroCopy, operations, bytes);
  const Point& polling = r.Asynchronous(Means::kRead, operations, kSpins, bytes);
  const Point& sleeping = r.Asynchronous(Means::kRead, operations, !kSpins, bytes);
  // At the sockets' rate. With all outstanding over, nothing goes on before the program does.
  const double wakes_us =
      sockets.mb_s / static_cast<double>(bytes) / static_cast<double>(operations);
  const double least = polling.work_percent * sockets.mb_s / polling.mb_s +
                       100 * wakes_us * MicrosecondsToWake(r.parameters());
  return {.operations = operations,
          .bytes = bytes,
          .sockets_percent = sockets.cpu_percent,
          .polling = polling.cpu_percent / sockets.cpu_percent,
          .sleeping = sleeping.cpu_percent / sockets.cpu_percent,
          .least = least / sockets.cpu_percent};
}

// How near adaptive comes to the better of copying and reading: the worst of all points.
double WorstAdaptive(Results& r) {
  double worst = 1;
  for (const size_t n : kConnections) {
    for (const uint64_t size : Sizes()) {
      const double best = std::max(r.Asynchronous(Means::kCopied, n, kSpins, size).mb_s,
                                   r.Asynchronous(Means::kRead, n, kSpins, size).mb_s);
      worst = std::min(worst, r.Asynchronous(Means::kAdaptive, n, kSpins, size).mb_s / best);
    }
  }
  return worst;
}

// A send of 32 KiB that finds the receiver early, less the time that its bytes take.
double Transaction(Results& r, Means means) {
  const uint64_t bytes = 32 * kKib;
  const Habit habit{.spin_us = kLibrarySpin, .pause_us = 300};
  const auto& parameters = r.parameters();
  const double rate = std::min(parameters.device_bus_mb_s, parameters.link_bandwidth_mb_s);
  return MeasureAsynchronous(parameters, means, habit, bytes).latency_us -
         static_cast<double>(bytes) / rate;
}

void AddEquivalence(Results& r, std::vector<Goal>& goals) {
  const double spinning = WorstBesideSockets(r, kSpins);
  const double sleeping = WorstBesideSockets(r, !kSpins);
  goals.push_back(
      {"es_bandwidth",
       "one socket with n operations, of the bandwidth of n sockets that block, at least "
       "(n 2 to 8, 8 to 64 KB)",
       "0.97", Format("%.2f; %.2f if it sleeps at once", spinning, sleeping), spinning >= 0.97});
  const double small = r.Asynchronous(Means::kRead, kMost, kSpins, 8 * kKib).cpu_percent /
                       r.Bandwidth(Mode::kZeroCopy, kMost, 8 * kKib).cpu_percent;
  goals.push_back({"es_cpu_8k", "of the CPU of 8 sockets at 8 KB, at most", "0.4",
                   Format("%.2f", small), small <= 0.4});
  double polls = 0;
  double sleeps = 0;
  for (const Share& one : CompareCpu(r)) {
    polls = std::max(polls, one.polling);
    sleeps = std::max(sleeps, one.sleeping);
  }
  goals.push_back({"es_cpu", "of their CPU at every point, at most", "0.4",
                   Format("%.2f; %.2f if it sleeps at once", polls, sleeps),
                   std::min(polls, sleeps) <= 0.4});
  for (const auto& [n, wanted] : {std::pair{size_t{2}, 32 * kKib}, std::pair{kMost, 4 * kKib}}) {
    const uint64_t spins = r.AsynchronousCrossover(n, kSpins);
    const uint64_t sleeps = r.AsynchronousCrossover(n, !kSpins);
    goals.push_back({"es_crossover_" + std::to_string(n),
                     "crossover of one connection with " + std::to_string(n) +
                         " operations (paper: 128 KB with one)",
                     "<= " + SizeText(wanted),
                     SizeText(spins) + "; " + SizeText(sleeps) + " if it sleeps at once",
                     spins > 0 && spins <= wanted});
  }
}

}  // namespace

std::string ToRow(const Goal& one) {
  return "| " + one.what + " | " + one.wanted + " | " + one.ours + " | " +
         (one.reached ? "yes" : "**no**") + " |";
}

std::string ToRow(const Share& one) {
  return "| " + Format("%.0f", static_cast<double>(one.operations)) + " | " + SizeText(one.bytes) +
         " | " + Format("%.0f %%", one.sockets_percent) +
         Format(" | %.2f | %.2f", one.polling, one.sleeping) + Format(" | %.2f |", one.least);
}

std::vector<Share> CompareCpu(Results& r) {
  std::vector<Share> shares;
  for (const size_t operations : kOperations) {
    for (const uint64_t bytes : kCompared) shares.push_back(CompareCpuAt(r, operations, bytes));
  }
  return shares;
}

std::vector<Goal> JudgeGoals(Results& r) {
  std::vector<Goal> goals;
  AddEquivalence(r, goals);
  const double four = r.Asynchronous(Means::kRead, 4, kSpins, 64 * kKib).mb_s;
  const double eight = r.Asynchronous(Means::kRead, kMost, kSpins, 64 * kKib).mb_s;
  goals.push_back({"es_64k", "one connection, 64 KB, 4 operations or more (paper: 1100 at most)",
                   ">= 1375 MB/s", Format("%.0f MB/s with 4, %.0f with 8", four, eight),
                   std::min(four, eight) >= 1375});
  const Point& asynchronous = r.Asynchronous(Means::kRead, 4, !kSpins, kMib);
  const Point& blocking = r.Bandwidth(Mode::kZeroCopy, 1, kMib);
  const double busy = asynchronous.cpu_percent / blocking.cpu_percent;
  const double for_a_byte = busy * blocking.mb_s / asynchronous.mb_s;
  goals.push_back(
      {"es_cpu_1m", "CPU at 1 MB, of a blocking ZCopy caller's", "<= 0.2",
       Format("%.2f if it sleeps at once; %.2f a byte, for it moves more", busy, for_a_byte),
       busy <= 0.2});
  const double faster = Transaction(r, Means::kWritten) / Transaction(r, Means::kRead);
  goals.push_back({"write_t0",
                   "Write ZCopy, the receiver early: what a transaction takes, of Read's", "<= 0.8",
                   Format("%.2f", faster), faster <= 0.8});
  const double adaptive = WorstAdaptive(r);
  goals.push_back({"adaptive",
                   "adaptive threshold, of the better of BCopy and ZCopy at every point", ">= 0.97",
                   Format("%.2f at the worst", adaptive), adaptive >= 0.97});
  return goals;
}

}  // namespace esdp::paper
