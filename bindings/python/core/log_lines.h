#ifndef ESDP_BINDINGS_PYTHON_CORE_LOG_LINES_H_
#define ESDP_BINDINGS_PYTHON_CORE_LOG_LINES_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace esdp::python {

// What a Context says to its log, kept until a Python thread comes by. The thread that moves the
// protocol must never wait for the interpreter lock.
//
//   Owns:     the lines, at most kLinesMax: what comes after is counted.
//   Threads:  Add: any. HandOver: with the interpreter lock held.
//   Blocks:   never.
//   Units:    -
//   Errors:   -
class LogLines {
 public:
  void Add(std::string_view line);
  // To logging.getLogger("esdp"), as INFO.
  void HandOver() {
    if (any_.load(std::memory_order_relaxed)) HandOverAll();
  }

 private:
  static constexpr size_t kLinesMax = 1000;

  void HandOverAll();

  std::mutex mutex_;
  std::vector<std::string> lines_;
  uint64_t left_out_ = 0;
  std::atomic<bool> any_{false};
};

}  // namespace esdp::python

#endif  // ESDP_BINDINGS_PYTHON_CORE_LOG_LINES_H_
