#include "tools/esdp_get/bring.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>

#include "tools/esdp_get/fetch.h"
#include "tools/esdp_get/status_bar.h"
#include "tools/esdp_get/tree.h"
#include "tools/esdp_get/upload.h"

namespace esdp_get {

int Bring(Connection& connection, const Options& options) {
  StatusBar bar(options, connection);
  Uploader uploader(connection,
                    {.resume = options.resume, .crc = options.crc, .replace = options.replace},
                    [&](const std::string& name, uint64_t done, uint64_t total) {
                      bar.OnMoved(name, done, total);
                    });
  const std::string before =
      options.to.empty() || options.to.ends_with('/') ? options.to : options.to + "/";
  int code = 0;
  for (const std::string& path : options.names) {
    const std::string name = before + std::filesystem::path(path).filename().string();
    const absl::Status status = uploader.Bring(path, name);
    bar.Finish();
    if (!status.ok()) {
      code = std::max(code, Complain(path, status));
    } else if (!options.quiet) {
      std::printf("%s\n", Printable(name).c_str());
    }
    if (!uploader.whole()) break;
  }
  return code;
}

}  // namespace esdp_get
