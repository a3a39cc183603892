#include "tests/bench/paper/goals.h"

#include <algorithm>
#include <utility>

#include "tests/bench/paper/text.h"

namespace esdp::paper {
namespace {

constexpr bool kSpins = true;
constexpr size_t kMost = 8;  // operations or sockets
constexpr uint64_t kCompared[] = {8 * kKib, 16 * kKib, 32 * kKib, 64 * kKib};

struct Ratio {
  double bandwidth = 1e9;
  double cpu = 0;
};

// One socket with n operations beside n sockets that block: the worst over n and sizes.
Ratio WorstBesideSockets(Results& r, bool spins) {
  Ratio worst;
  for (const size_t n : {size_t{2}, size_t{4}, kMost}) {
    for (const uint64_t size : kCompared) {
      const Point& one = r.Asynchronous(Means::kRead, n, spins, size);
      const Point& many = r.Bandwidth(Mode::kZeroCopy, n, size);
      worst.bandwidth = std::min(worst.bandwidth, one.mb_s / many.mb_s);
      worst.cpu = std::max(worst.cpu, one.cpu_percent / many.cpu_percent);
    }
  }
  return worst;
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
  const Ratio spinning = WorstBesideSockets(r, kSpins);
  const Ratio sleeping = WorstBesideSockets(r, !kSpins);
  goals.push_back(
      {"es_bandwidth",
       "one socket with n operations, of the bandwidth of n sockets that block, at least "
       "(n 2 to 8, 8 to 64 KB)",
       "0.97", Format("%.2f; %.2f if it sleeps at once", spinning.bandwidth, sleeping.bandwidth),
       spinning.bandwidth >= 0.97});
  const double small = r.Asynchronous(Means::kRead, kMost, kSpins, 8 * kKib).cpu_percent /
                       r.Bandwidth(Mode::kZeroCopy, kMost, 8 * kKib).cpu_percent;
  goals.push_back({"es_cpu_8k", "of the CPU of 8 sockets at 8 KB, at most", "0.4",
                   Format("%.2f", small), small <= 0.4});
  goals.push_back({"es_cpu", "of their CPU at every point, at most", "0.4",
                   Format("%.2f; %.2f if it sleeps at once", spinning.cpu, sleeping.cpu),
                   spinning.cpu <= 0.4});
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

std::vector<Goal> JudgeGoals(Results& r) {
  std::vector<Goal> goals;
  AddEquivalence(r, goals);
  const double read = r.Asynchronous(Means::kRead, kMost, kSpins, 64 * kKib).mb_s;
  const double written = r.Asynchronous(Means::kWritten, 4, kSpins, 64 * kKib).mb_s;
  goals.push_back({"es_64k", "one connection, 64 KB, 4 operations or more (paper: 1100 at most)",
                   ">= 1375 MB/s",
                   Format("%.0f MB/s written with 4, %.0f read with 8", written, read),
                   std::max(read, written) >= 1375});
  const double cpu = r.Asynchronous(Means::kRead, 4, !kSpins, kMib).cpu_percent /
                     r.Bandwidth(Mode::kZeroCopy, 1, kMib).cpu_percent;
  goals.push_back({"es_cpu_1m", "CPU at 1 MB, of a blocking ZCopy caller's", "<= 0.2",
                   Format("%.2f if it sleeps at once", cpu), cpu <= 0.2});
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
