#include "tools/esdp_copy/progress_bar.h"

#include <array>
#include <cstdio>
#include <utility>

namespace esdp_copy {
namespace {

constexpr size_t kCells = 30;
constexpr absl::Duration kInterval = absl::Milliseconds(100);

}  // namespace

std::string BarLine(const std::string& name, uint64_t done, uint64_t total, uint64_t since_start,
                    absl::Duration elapsed) {
  const double part = total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total);
  const double seconds = absl::ToDoubleSeconds(elapsed);
  const double rate = seconds > 0 ? static_cast<double>(since_start) / seconds : 0;
  std::string cells(static_cast<size_t>(part * static_cast<double>(kCells)), '#');
  cells.resize(kCells, ' ');
  std::array<char, 100> text{};
  std::snprintf(text.data(), text.size(), " %3d%% [%s] %8.1f MB/s", static_cast<int>(part * 100),
                cells.c_str(), rate / 1e6);
  std::string line = name + text.data();
  if (done < total && rate > 0) {
    const auto left = static_cast<int64_t>(static_cast<double>(total - done) / rate);
    line += "  " + std::to_string(left) + " s left";
  }
  return line;
}

ProgressBar::ProgressBar(std::string name, uint64_t done, uint64_t total, bool shown,
                         absl::Time now)
    : name_(std::move(name)), first_(done), total_(total), shown_(shown), start_(now) {}

void ProgressBar::Update(uint64_t done, absl::Time now) {
  if (shown_ && now - last_ >= kInterval) Draw(done, now);
}

void ProgressBar::Finish(uint64_t done, absl::Time now) {
  if (!shown_) return;
  Draw(done, now);
  std::fputc('\n', stderr);
}

void ProgressBar::Draw(uint64_t done, absl::Time now) {
  last_ = now;
  std::fprintf(stderr, "\r%s\x1b[K",
               BarLine(name_, done, total_, done - first_, now - start_).c_str());
}

}  // namespace esdp_copy
