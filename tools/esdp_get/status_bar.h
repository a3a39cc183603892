#ifndef ESDP_TOOLS_ESDP_GET_STATUS_BAR_H_
#define ESDP_TOOLS_ESDP_GET_STATUS_BAR_H_

#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>

#include "tools/esdp_copy/progress_bar.h"
#include "tools/esdp_files/names.h"
#include "tools/esdp_get/connection.h"
#include "tools/esdp_get/options.h"
#include "tools/esdp_get/tree.h"

namespace esdp_get {

// A bar for each file that moves, where one is to be seen.
class StatusBar {
 public:
  StatusBar(const Options& options, Connection& connection)
      : shown_(!options.quiet && (options.progress || isatty(STDERR_FILENO) != 0)),
        connection_(connection) {}

  void OnMoved(const std::string& name, uint64_t done, uint64_t total) {
    if (!shown_) return;
    const absl::Time now = connection_.context().Now();
    if (!bar_) bar_.emplace(Printable(esdp_files::Split(name).last), done, total, true, now);
    bar_->Update(done, now);
    done_ = done;
  }
  void Finish() {
    if (bar_) bar_->Finish(done_, connection_.context().Now());
    bar_.reset();
  }

 private:
  bool shown_;
  Connection& connection_;
  std::optional<esdp_copy::ProgressBar> bar_;
  uint64_t done_ = 0;
};

}  // namespace esdp_get

#endif  // ESDP_TOOLS_ESDP_GET_STATUS_BAR_H_
