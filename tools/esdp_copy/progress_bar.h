#ifndef ESDP_TOOLS_ESDP_COPY_PROGRESS_BAR_H_
#define ESDP_TOOLS_ESDP_COPY_PROGRESS_BAR_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace esdp_copy {

// One line: "name  45% [#####      ]  12.3 MB/s  3 s left".
std::string BarLine(const std::string& name, uint64_t done, uint64_t total, uint64_t since_start,
                    absl::Duration elapsed);

// Draws that line on standard error, over itself, ten times a second.
class ProgressBar {
 public:
  // `done` bytes are there already, from an earlier run.
  ProgressBar(std::string name, uint64_t done, uint64_t total, bool shown, absl::Time now);
  void Update(uint64_t done, absl::Time now);
  // Ends the line.
  void Finish(uint64_t done, absl::Time now);

 private:
  void Draw(uint64_t done, absl::Time now);

  std::string name_;
  uint64_t first_;
  uint64_t total_;
  bool shown_;
  absl::Time start_;
  absl::Time last_ = absl::InfinitePast();
};

}  // namespace esdp_copy

#endif  // ESDP_TOOLS_ESDP_COPY_PROGRESS_BAR_H_
