#include "bindings/python/core/log_lines.h"

#include <pybind11/pybind11.h>

namespace py = pybind11;

namespace esdp::python {

void LogLines::Add(std::string_view line) {
  const std::lock_guard lock(mutex_);
  if (lines_.size() < kLinesMax) {
    lines_.emplace_back(line);
  } else {
    ++left_out_;
  }
  any_.store(true, std::memory_order_relaxed);
}

void LogLines::HandOverAll() {
  std::vector<std::string> lines;
  {
    const std::lock_guard lock(mutex_);
    lines.swap(lines_);
    if (left_out_ > 0) lines.push_back(std::to_string(left_out_) + " more lines were left out");
    left_out_ = 0;
    any_.store(false, std::memory_order_relaxed);
  }
  const py::object logger = py::module_::import("logging").attr("getLogger")("esdp");
  for (const std::string& line : lines) logger.attr("info")("%s", line);
}

}  // namespace esdp::python
