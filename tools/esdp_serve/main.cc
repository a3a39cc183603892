// Serves the files below a folder: many clients, each with its share, and nothing outside of it.

#include <sys/resource.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "tools/esdp_serve/metrics.h"
#include "tools/esdp_serve/metrics_server.h"
#include "tools/esdp_serve/options.h"
#include "tools/esdp_serve/server.h"
#include "tools/esdp_serve/signals.h"

namespace {

constexpr int kNotUnderstood = 2;
constexpr int kCannotServe = 3;

int Complain(const absl::Status& status, int code) {
  std::fprintf(stderr, "esdp_serve: %s\n", std::string(status.message()).c_str());
  return code;
}

// Descriptors are for clients, what they fetch and bring, and what is kept open.
void RaiseOpenFiles() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);  // what it does not get it goes without
}

absl::Status Serve(const esdp_serve::Options& options) {
  RaiseOpenFiles();
  esdp_serve::Metrics metrics;
  std::unique_ptr<esdp_serve::Server> server;
  esdp_serve::Signals signals;  // before any other thread, and ended before the server is
  auto opened = esdp_serve::Server::Open(options, metrics);
  if (!opened.ok()) return opened.status();
  server = *std::move(opened);
  std::unique_ptr<esdp_serve::MetricsServer> metrics_server;
  if (options.metrics) {
    auto counts = esdp_serve::MetricsServer::Open(*options.metrics, metrics);
    if (!counts.ok()) return counts.status();
    metrics_server = *std::move(counts);
    std::printf("metrics on %s\n", metrics_server->address().ToString().c_str());
  }
  std::printf("listening on %s\n", server->address().ToString().c_str());
  std::fflush(stdout);
  signals.Start([&] { server->Stop(); });
  return server->Run();
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = esdp_serve::ParseOptions({argv + 1, argv + argc});
  if (!options.ok()) return Complain(options.status(), kNotUnderstood);
  if (options->help) return std::fputs(esdp_serve::kUsage, stdout), 0;
  const absl::Status status = Serve(*options);
  return status.ok() ? 0 : Complain(status, kCannotServe);
}
