#include "tests/bench/paper/results.h"

#include <algorithm>

namespace esdp::paper {
namespace {

constexpr std::array<uint64_t, 11> kSizes = [] {
  std::array<uint64_t, 11> sizes{};
  for (size_t i = 0; i < sizes.size(); ++i) sizes[i] = 4 * kKib << i;
  return sizes;
}();
constexpr std::array<uint64_t, 7> kSmallSizes = {1, 64, 128, 256, 512, 1 * kKib, 2 * kKib};
constexpr std::array<uint64_t, 9> kLargeSizes = {4 * kKib,   8 * kKib,   16 * kKib,
                                                 32 * kKib,  64 * kKib,  128 * kKib,
                                                 256 * kKib, 512 * kKib, 1024 * kKib};

}  // namespace

std::span<const uint64_t> Sizes() { return kSizes; }
std::span<const uint64_t> SmallSizes() { return kSmallSizes; }
std::span<const uint64_t> LargeSizes() { return kLargeSizes; }

const Point& Results::Bandwidth(Mode mode, size_t connections, uint64_t bytes) {
  const auto [place, is_new] = bandwidth_.try_emplace({mode, connections, bytes});
  if (is_new) place->second = MeasureBandwidth(parameters_, mode, connections, bytes);
  return place->second;
}

const Point& Results::Latency(Mode mode, uint64_t bytes) {
  const auto [place, is_new] = latency_.try_emplace({mode, 1, bytes});
  if (is_new) place->second = MeasureLatency(parameters_, mode, bytes);
  return place->second;
}

const Point& Results::Asynchronous(Means means, size_t outstanding, bool spins, uint64_t bytes) {
  const auto [place, is_new] = asynchronous_.try_emplace({means, outstanding, spins, bytes});
  if (is_new) {
    const Habit habit{.outstanding = outstanding, .spin_us = spins ? kLibrarySpin : 0};
    place->second = MeasureAsynchronous(parameters_, means, habit, bytes);
  }
  return place->second;
}

uint64_t Results::AsynchronousCrossover(size_t outstanding, bool spins) {
  uint64_t crossover = 0;
  for (auto size = kSizes.rbegin(); size != kSizes.rend(); ++size) {
    const double read = Asynchronous(Means::kRead, outstanding, spins, *size).mb_s;
    if (read <= Bandwidth(Mode::kBuffered, 1, *size).mb_s) break;
    crossover = *size;
  }
  return crossover;
}

uint64_t Results::BestSize(Mode mode, size_t connections) {
  return *std::max_element(kSizes.begin(), kSizes.end(), [&](uint64_t one, uint64_t other) {
    return Bandwidth(mode, connections, one).mb_s < Bandwidth(mode, connections, other).mb_s;
  });
}

double Results::MostMbS(Mode mode, size_t connections) {
  return Bandwidth(mode, connections, BestSize(mode, connections)).mb_s;
}

uint64_t Results::Crossover(size_t connections) {
  uint64_t crossover = 0;
  for (auto size = kSizes.rbegin(); size != kSizes.rend(); ++size) {
    const double zero_copy = Bandwidth(Mode::kZeroCopy, connections, *size).mb_s;
    if (zero_copy <= Bandwidth(Mode::kBuffered, connections, *size).mb_s) break;
    crossover = *size;
  }
  return crossover;
}

}  // namespace esdp::paper
