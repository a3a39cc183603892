#include "tools/esdp_get/bring.h"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tools/esdp_get/fetch.h"
#include "tools/esdp_get/status_bar.h"
#include "tools/esdp_get/tree.h"
#include "tools/esdp_get/upload.h"

namespace esdp_get {
namespace {

namespace wire = esdp_files::wire;

class Bringer {
 public:
  Bringer(Connection& connection, const Options& options)
      : connection_(connection),
        options_(options),
        before_(options.to.empty() || options.to.ends_with('/') ? options.to : options.to + "/"),
        bar_(options, connection),
        uploader_(connection,
                  {.resume = options.resume,
                   .crc = options.crc,
                   .replace = options.replace,
                   .sync_on_the_way = options.sync},
                  [this](const std::string& name, uint64_t done, uint64_t total) {
                    bar_.OnMoved(name, done, total);
                  }) {}

  int Run() {
    for (const std::string& path : options_.names) {
      const std::string last = std::filesystem::path(path).lexically_normal().filename().string();
      std::error_code error;
      const bool is_folder = options_.recursive && std::filesystem::is_directory(path, error);
      // "folder/" and "." name what is in them.
      is_folder ? BringFolder(path, last == "." ? "" : last) : BringFile(path, last);
      if (!uploader_.whole()) break;
    }
    return code_;
  }

 private:
  void BringFile(const std::string& path, const std::string& name) {
    const absl::Status status = uploader_.Bring(path, before_ + name);
    bar_.Finish();
    if (!status.ok()) return Fail(path, status);
    if (!options_.quiet) std::printf("%s\n", Printable(before_ + name).c_str());
  }

  // Folders before what is in them. A link that leads to a folder is passed over: it may lead up.
  void BringFolder(const std::string& path, const std::string& name) {
    if (absl::Status status = MakeFolder(before_ + name); !status.ok()) return Fail(path, status);
    std::error_code error;
    std::vector<std::filesystem::directory_entry> entries;
    for (std::filesystem::directory_iterator at(path, error), end; !error && at != end;
         at.increment(error)) {
      entries.push_back(*at);
    }
    if (error) return Fail(path, absl::ErrnoToStatus(error.value(), "cannot be listed"));
    std::sort(entries.begin(), entries.end());
    for (const auto& entry : entries) {
      const std::string last = entry.path().filename().string();
      const std::string below = name.empty() ? last : name + "/" + last;
      if (entry.is_directory(error) && !entry.is_symlink(error)) {
        BringFolder(entry.path(), below);
      } else if (entry.is_regular_file(error)) {
        BringFile(entry.path(), below);
      } else {
        std::fprintf(stderr, "esdp_get: %s: passed over, no file\n",
                     Printable(entry.path().string()).c_str());
      }
      if (!uploader_.whole()) return;
    }
  }

  absl::Status MakeFolder(const std::string& name) {
    if (name.empty() || name.ends_with('/')) return absl::OkStatus();  // where it all goes
    wire::Request request;
    request.mutable_make_folder()->set_name(name);
    const auto answer = connection_.Get(std::move(request));
    return answer.ok() ? StatusOf(*answer) : answer.status();
  }

  void Fail(const std::string& path, const absl::Status& status) {
    code_ = std::max(code_, Complain(path, status));
  }

  Connection& connection_;
  const Options& options_;
  std::string before_;
  StatusBar bar_;
  Uploader uploader_;
  int code_ = 0;
};

}  // namespace

int Bring(Connection& connection, const Options& options) {
  return Bringer(connection, options).Run();
}

}  // namespace esdp_get
