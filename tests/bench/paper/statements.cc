#include "tests/bench/paper/statements.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/bench/paper/text.h"

namespace esdp::paper {
namespace {

constexpr Mode kB = Mode::kBuffered;
constexpr Mode kZ = Mode::kZeroCopy;

// Collects the statements of one section after the other.
class Table {
 public:
  explicit Table(Results& results) : r(results) {}

  void Input(const char* section, const char* sentence, const char* paper, std::string ours) {
    rows.push_back({"", section, sentence, paper, std::move(ours), "", Verdict::kInput});
  }
  void Add(const char* id, const char* section, const char* sentence, const char* paper,
           std::string ours, const char* tolerance, bool within) {
    rows.push_back({id, section, sentence, paper, std::move(ours), tolerance,
                    within ? Verdict::kWithin : Verdict::kOutside});
  }

  Results& r;
  std::vector<Statement> rows;
};

bool Near(double value, double wanted, double off) { return std::abs(value - wanted) <= off; }

void AddInputs(Table& table) {
  const auto& p = table.r.parameters();
  table.Input("2.4", "Each FMR can map up to 128KB of user buffer memory", "128 KB",
              Format("%.0f KB", p.kernel_region_kib));
  table.Input("3.1", "400% of CPU utilization means that 4 logical CPUs are fully utilized", "4",
              Format("%.0f", p.machine_cores * p.machine_threads_per_core));
  table.Input("3.2", "two CPUs in an SMP configuration with 1MB cache each", "2 x 1 MB",
              Format("%.0f x %.0f KB", p.machine_cores, p.machine_cache_kib));
  table.Input("3.2", "a 4X InfiniBand link running at double data rate (20Gb/s)", "16 Gb/s of data",
              Format("%.0f MB/s", p.link_bandwidth_mb_s));
}

void AddOneConnection(Table& table) {
  Results& r = table.r;
  const uint64_t crossover = r.Crossover(1);
  table.Add("crossover_1", "4.1", "Starting at 128KB ZCopy achieves better bandwidth than BCopy",
            "128 KB", SizeText(crossover), "exact", crossover == 128 * kKib);
  const auto sizes = Sizes();
  const bool lower = std::all_of(sizes.begin(), sizes.end(), [&](uint64_t size) {
    return r.Bandwidth(kZ, 1, size).cpu_percent < r.Bandwidth(kB, 1, size).cpu_percent;
  });
  table.Add("cpu_lower_1", "4.1", "CPU overhead is lower throughout for the ZCopy path",
            "all sizes", lower ? "all sizes" : "not all", "exact", lower);
  double small = 0;
  int count = 0;
  for (uint64_t size = 4 * kKib; size < 128 * kKib; size *= 2, ++count) {
    small += r.Bandwidth(kB, 1, size).cpu_percent;
  }
  small /= count;
  table.Add("cpu_bcopy_1", "4.1", "For small messages BCopy CPU utilization is around 100%",
            "100 %", Format("%.0f %%", small), "20 points", Near(small, 100, 20));
  const double zcopy = r.Bandwidth(kZ, 1, 4 * kKib).cpu_percent;
  table.Add("cpu_zcopy_small_1", "4.1", "for ZCopy it is around 50%", "50 %",
            Format("%.0f %%", zcopy), "5 points", Near(zcopy, 50, 5));
  double least = zcopy;
  for (const uint64_t size : sizes) {
    least = std::min(least, r.Bandwidth(kZ, 1, size).cpu_percent);
  }
  table.Add("cpu_zcopy_large_1", "4.1", "ZCopy CPU utilization decreases to as low as 25%", "25 %",
            Format("%.0f %%", least), "5 points", Near(least, 25, 5));
  const double most = r.MostMbS(kZ, 1);
  table.Add("beyond_sdr", "4.1", "scales beyond 4x single data rate bandwidth", "1000 MB/s",
            Format("%.0f MB/s", most), "above", most > 1000);
  table.Add("zcopy_max_1", "4.1", "reaches the 1100MB/s maximum bandwidth", "1100 MB/s",
            Format("%.0f MB/s", most), "4 %", Near(most, 1100, 44));
}

// How much slower BCopy is at twice the size than at it.
double Drop(Results& r, uint64_t bytes) {
  return r.Bandwidth(kB, 1, 2 * bytes).mb_s / r.Bandwidth(kB, 1, bytes).mb_s;
}

void AddCaches(Table& table) {
  const double before = Drop(table.r, 256 * kKib);
  const double behind = Drop(table.r, 512 * kKib);
  table.Add("cache_drop", "4.1", "BCopy bandwidth drop at messages larger than 512KB",
            "above 512 KB", Format("x %.2f behind 512 KB, x %.2f before", behind, before),
            "10 % and 3 %", behind < 0.9 && before > 0.97);
  fabric::sim::testbed::Parameters smaller = table.r.parameters();
  smaller.machine_cache_kib /= 2;
  Results predecessor(smaller);
  const double at_half = Drop(predecessor, 256 * kKib);
  const double below = Drop(predecessor, 128 * kKib);
  table.Add("cache_drop_512", "4.1", "in [5] at message size 256KB with 512KB CPU cache",
            "above 256 KB", Format("x %.2f behind 256 KB, x %.2f before", at_half, below),
            "10 % and 3 %", at_half < 0.9 && below > 0.97);
}

void AddSeveralConnections(Table& table) {
  Results& r = table.r;
  const std::pair<size_t, uint64_t> crossovers[] = {{2, 32 * kKib}, {4, 16 * kKib}};
  for (const auto& [connections, size] : crossovers) {
    const std::string id = "crossover_" + std::to_string(connections);
    const std::string sentence =
        SizeText(size) + " for " + std::to_string(connections) + " connections";
    const uint64_t ours = r.Crossover(connections);
    table.Add(id.c_str(), "4.2", sentence.c_str(), SizeText(size).c_str(), SizeText(ours), "exact",
              ours == size);
  }
  double most = 0;
  for (const uint64_t size : Sizes()) {
    if (size >= 256 * kKib) most = std::max(most, r.Bandwidth(kZ, 2, size).cpu_percent);
  }
  table.Add("cpu_zcopy_2", "4.2", "ZCopy CPU utilization is below 50% at 256KB and longer", "50 %",
            Format("%.0f %%", most), "below", most < 50);
  const double cpu = r.Bandwidth(kB, 2, r.BestSize(kB, 2)).cpu_percent;
  table.Add("cpu_bcopy_2", "4.2",
            "In BCopy mode, all 4 CPUs get saturated to achieve maximum bandwidth", "400 %",
            Format("%.0f %%", cpu), "20 points", cpu > 380);
}

void AddEightConnections(Table& table) {
  Results& r = table.r;
  const double zcopy = r.MostMbS(kZ, 8);
  const double bcopy = r.MostMbS(kB, 8);
  table.Add("zcopy_max_8", "4.2", "8 connections: ZCopy sustains higher than 1360MB/s",
            "> 1360 MB/s", Format("%.0f MB/s", zcopy), "1360 to 1400",
            zcopy > 1360 && zcopy < 1400);
  table.Add("bcopy_max_8", "4.2", "while BCopy delivers at most 630MB/s", "630 MB/s",
            Format("%.0f MB/s", bcopy), "5 %", Near(bcopy, 630, 32));
  table.Add("ratio_8", "1", "a bandwidth growth from 630MB/s to 1360MB/s", "2.16",
            Format("%.2f", zcopy / bcopy), "0.1", Near(zcopy / bcopy, 2.16, 0.1));
  const Point& zcopy_1m = r.Bandwidth(kZ, 8, kMib);
  const Point& bcopy_1m = r.Bandwidth(kB, 8, kMib);
  const double factor = bcopy_1m.cpu_percent / zcopy_1m.cpu_percent;
  table.Add("cpu_factor_8", "1", "reducing the CPU utilization by a factor of ten", "10",
            Format("%.1f at 1 MB", factor), "2", Near(factor, 10, 2));
  const bool superior = [&] {
    for (size_t connections = 1; connections <= 8; ++connections) {
      for (const uint64_t size : {64 * kKib, kMib}) {
        if (size < kMib && connections < 2) continue;
        const double faster = r.Bandwidth(kZ, connections, size).mb_s;
        if (faster <= r.Bandwidth(kB, connections, size).mb_s) return false;
      }
    }
    return true;
  }();
  table.Add("superior", "4.2",
            "for 2 or more connections for 64KB messages, and for any number for 1MB, ZCopy "
            "achieves superior bandwidth",
            "all", superior ? "all" : "not all", "exact", superior);
  const double triples = zcopy_1m.mb_s / bcopy_1m.mb_s;
  table.Add("triples", "4.2", "ZCopy triples the bandwidth", "3", Format("%.2f at 1 MB", triples),
            "0.3", Near(triples, 3, 0.3));
  table.Add("cpu_zcopy_8", "4.2", "utilizing 50% of a single CPU", "50 %",
            Format("%.0f %% at 1 MB", zcopy_1m.cpu_percent), "at most, 5 points",
            zcopy_1m.cpu_percent <= 55);
  const uint64_t crossover = r.Crossover(8);
  table.Add("crossover_8", "6", "decreases below 16KB message size (a handful of connections)",
            "< 16 KB", SizeText(crossover), "exact", crossover > 0 && crossover < 16 * kKib);
}

void AddLatency(Table& table) {
  Results& r = table.r;
  double worst = 0;
  for (const uint64_t size : SmallSizes()) {
    const double with = r.Latency(Mode::kByThreshold, size).latency_us;
    worst = std::max(worst, std::abs(with / r.Latency(kB, size).latency_us - 1));
  }
  table.Add("latency_small", "4.3", "at small messages there is only a negligible difference", "0",
            Format("%.1f %%", 100 * worst), "1 %", worst < 0.01);
  const Point& small_b = r.Latency(kB, 1 * kKib);
  const Point& small_z = r.Latency(kZ, 1 * kKib);
  const bool wasteful =
      small_z.latency_us > small_b.latency_us && small_z.cpu_percent > small_b.cpu_percent;
  table.Add("latency_wasteful", "4.3",
            "ZCopy, for small messages, is wasteful: worse, and more CPU resources", "worse",
            Format("%.0f us for %.0f us at 1 KB", small_z.latency_us, small_b.latency_us), "both",
            wasteful);
  const Point& large_b = r.Latency(kB, kMib);
  const Point& large_z = r.Latency(kZ, kMib);
  const bool better =
      large_z.latency_us < large_b.latency_us && large_z.cpu_percent < large_b.cpu_percent;
  table.Add("latency_large", "4.3", "for large messages ZCopy: lower latency, reduced CPU overhead",
            "better", Format("%.0f us for %.0f us at 1 MB", large_z.latency_us, large_b.latency_us),
            "both", better);
}

}  // namespace

const char* ToString(Verdict verdict) {
  switch (verdict) {
    case Verdict::kWithin:
      return "yes";
    case Verdict::kOutside:
      return "**no**";
    case Verdict::kInput:
      return "input";
  }
  return "unknown";
}

std::string ToRow(const Statement& one) {
  return "| " + one.section + " | " + one.sentence + " | " + one.paper + " | " + one.ours + " | " +
         one.tolerance + " | " + ToString(one.verdict) + " |";
}

std::vector<Statement> Judge(Results& results) {
  Table table(results);
  AddInputs(table);
  AddOneConnection(table);
  AddCaches(table);
  AddSeveralConnections(table);
  AddEightConnections(table);
  AddLatency(table);
  return std::move(table.rows);
}

}  // namespace esdp::paper
