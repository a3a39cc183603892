#include "tools/esdp_get/fetch.h"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <utility>

#include "absl/status/status.h"
#include "tools/esdp_get/download.h"
#include "tools/esdp_get/status_bar.h"
#include "tools/esdp_get/tree.h"

namespace esdp_get {
namespace {

namespace wire = esdp_files::wire;

struct Wanted {
  std::string name;    // there
  std::string target;  // here
};

class Fetcher {
 public:
  Fetcher(Connection& connection, const Options& options)
      : connection_(connection),
        options_(options),
        to_(options.to.empty() ? "." : options.to),
        bar_(options, connection),
        downloader_(connection,
                    {.resume = options.resume,
                     .crc = options.crc,
                     .sync = options.sync,
                     .sha256 = options.sha256},
                    [this](const std::string& name, uint64_t done, uint64_t total) {
                      bar_.OnMoved(name, done, total);
                    }) {}

  int Run() {
    for (const std::string& name : options_.names) {
      if (absl::Status status = Plan(name); !status.ok()) {
        code_ = std::max(code_, Complain(name, status));
      }
    }
    options_.resume ? FetchOneByOne() : FetchAhead();
    return code_;
  }

 private:
  absl::Status Plan(const std::string& name) {
    std::string base = std::filesystem::path(name).lexically_normal().filename();
    if (base == ".." || base == ".") base.clear();
    const bool into = std::filesystem::is_directory(to_);
    if (!into && options_.names.size() > 1) {
      return absl::NotFoundError(to_ + ": no such folder");
    }
    if (!options_.recursive && base.empty())
      return absl::InvalidArgumentError("a folder: see --recursive");
    if (!options_.recursive) {
      wanted_.push_back({name, into ? to_ + "/" + base : to_});
      return absl::OkStatus();
    }
    wire::Request request;
    request.mutable_stat()->set_name(name);
    const auto about = connection_.Get(std::move(request));
    if (!about.ok()) return about.status();
    if (about->status() != wire::OK) return StatusOf(*about);
    const std::string target = into && !base.empty() ? to_ + "/" + base : to_;
    if (about->kind() == wire::FOLDER) return PlanTree(name, target);
    wanted_.push_back({name, target});
    return absl::OkStatus();
  }

  absl::Status PlanTree(const std::string& name, const std::string& target) {
    Tree tree;
    if (absl::Status status = ListTree(connection_, name, tree); !status.ok()) return status;
    std::error_code error;
    tree.folders.insert(tree.folders.begin(), "");
    for (const std::string& folder : tree.folders) {
      const std::string path = folder.empty() ? target : target + "/" + folder;
      std::filesystem::create_directory(path, error);
      if (error) return absl::ErrnoToStatus(error.value(), path);
    }
    const std::string before = name.empty() ? "" : name + "/";
    for (const std::string& file : tree.files) {
      wanted_.push_back({before + file, target + "/" + file});
    }
    for (const std::string& other : tree.passed_over) {
      std::fprintf(stderr, "esdp_get: %s: passed over, no file\n",
                   Printable(before + other).c_str());
    }
    return absl::OkStatus();
  }

  // As many as may be are asked before the first has come.
  void FetchAhead() {
    std::deque<Wanted> asked;
    while (!asked.empty() || !wanted_.empty()) {
      while (!wanted_.empty() && connection_.may_ask() > 0) {
        const absl::Status status = downloader_.Ask(wanted_.front().name);
        if (!status.ok()) return Lost(status);
        asked.push_back(std::move(wanted_.front()));
        wanted_.pop_front();
      }
      const Wanted one = std::move(asked.front());
      asked.pop_front();
      Tell(one, downloader_.Take(one.name, one.target));
      if (!downloader_.whole()) return;
    }
  }

  void FetchOneByOne() {
    while (!wanted_.empty()) {
      const Wanted one = std::move(wanted_.front());
      wanted_.pop_front();
      Tell(one, downloader_.Fetch(one.name, one.target));
      if (!downloader_.whole()) return;
    }
  }

  void Lost(const absl::Status& status) { code_ = std::max(code_, Complain("the server", status)); }

  void Tell(const Wanted& one, const absl::Status& status) {
    bar_.Finish();
    if (!status.ok()) {
      code_ = std::max(code_, Complain(one.name, status));
    } else if (!options_.quiet) {
      std::printf("%s\n", Printable(one.target).c_str());
    }
  }

  Connection& connection_;
  const Options& options_;
  std::string to_;
  StatusBar bar_;
  Downloader downloader_;
  std::deque<Wanted> wanted_;
  int code_ = 0;
};

}  // namespace

int CodeOf(const absl::Status& status) {
  if (status.ok()) return 0;
  const bool again = absl::IsUnavailable(status) || absl::IsAborted(status) ||
                     absl::IsResourceExhausted(status) || absl::IsDeadlineExceeded(status);
  return again ? kAgain : kFailed;
}

int Complain(const std::string& name, const absl::Status& status) {
  const int code = CodeOf(status);
  std::fprintf(
      stderr, "esdp_get: %s: %s%s\n", Printable(name).c_str(),
      Printable(std::string_view(status.message().data(), status.message().size())).c_str(),
      code == kAgain ? ": run again to go on" : "");
  return code;
}

int Fetch(Connection& connection, const Options& options) {
  return Fetcher(connection, options).Run();
}

}  // namespace esdp_get
