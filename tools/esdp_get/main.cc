// Fetches files from esdp_serve, and tells what is there.

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "tools/esdp_get/bring.h"
#include "tools/esdp_get/connection.h"
#include "tools/esdp_get/fetch.h"
#include "tools/esdp_get/options.h"
#include "tools/esdp_get/tree.h"

namespace {

namespace wire = esdp_files::wire;

std::string TimeText(int64_t ns) {
  constexpr int64_t kSecond = 1'000'000'000;
  const std::time_t seconds = ns / kSecond;
  std::tm parts{};
  std::array<char, 32> text{};
  if (gmtime_r(&seconds, &parts) == nullptr) return "?";
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
  return text.data();
}

const char* KindText(wire::Kind kind) {
  switch (kind) {
    case wire::FILE:
      return "file";
    case wire::FOLDER:
      return "folder";
    case wire::LINK:
      return "link";
    default:
      return "other";
  }
}

void PrintLine(wire::Kind kind, uint64_t size, int64_t mtime_ns, const std::string& name) {
  std::printf("%-6s %14" PRIu64 "  %s  %s\n", KindText(kind), size, TimeText(mtime_ns).c_str(),
              esdp_get::Printable(name).c_str());
}

absl::Status List(esdp_get::Connection& connection, const std::string& name) {
  std::vector<wire::Entry> entries;
  if (absl::Status status = esdp_get::ListFolder(connection, name, entries); !status.ok()) {
    return status;
  }
  for (const wire::Entry& entry : entries) {
    PrintLine(entry.kind(), entry.size(), entry.mtime_ns(), entry.name());
  }
  return absl::OkStatus();
}

absl::Status Stat(esdp_get::Connection& connection, const std::string& name) {
  wire::Request request;
  request.mutable_stat()->set_name(name);
  const auto answer = connection.Get(std::move(request));
  if (!answer.ok()) return answer.status();
  if (answer->status() != wire::OK) return esdp_get::StatusOf(*answer);
  PrintLine(answer->kind(), answer->size(), answer->mtime_ns(), name);
  return absl::OkStatus();
}

int Run(const esdp_get::Options& options) {
  const auto connection =
      esdp_get::Connection::Open(options.fabric, options.server, options.weight);
  if (!connection.ok()) {
    return esdp_get::Complain(options.server.ToString(), connection.status());
  }
  if (options.command == esdp_get::Command::kGet) return esdp_get::Fetch(**connection, options);
  if (options.command == esdp_get::Command::kPut) return esdp_get::Bring(**connection, options);
  int code = 0;
  for (const std::string& name : options.names) {
    const absl::Status status = options.command == esdp_get::Command::kList
                                    ? List(**connection, name)
                                    : Stat(**connection, name);
    if (!status.ok()) code = std::max(code, esdp_get::Complain(name, status));
  }
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = esdp_get::ParseOptions({argv + 1, argv + argc});
  if (!options.ok()) {
    std::fprintf(stderr, "esdp_get: %s\n", std::string(options.status().message()).c_str());
    return esdp_get::kNotUnderstood;
  }
  if (options->help) return std::fputs(esdp_get::kUsage, stdout), 0;
  return Run(*options);
}
