// Measures what the SDP paper's figures show on a simulated test-bed, and judges its statements.
//
//   paper TESTBED.txtpb FOLDER
//
// writes figures.tsv and statements.md there.

#include <cstdio>
#include <exception>
#include <fstream>
#include <string>

#include "tests/bench/paper/pair.h"
#include "tests/bench/paper/read_parameters.h"
#include "tests/bench/paper/results.h"
#include "tests/bench/paper/statements.h"

namespace esdp::paper {
namespace {

constexpr Mode kModes[] = {Mode::kBuffered, Mode::kZeroCopy};
const char* NameOf(Mode mode) { return mode == Mode::kBuffered ? "BCopy" : "ZCopy"; }

// One line for each point: figure, curve, connections, bytes, MB/s, CPU, us.
void Write(std::ofstream& out, const char* figure, Mode mode, size_t connections, uint64_t bytes,
           const Point& point) {
  char line[160];
  std::snprintf(line, sizeof(line), "%s\t%s\t%zu\t%llu\t%.1f\t%.1f\t%.2f\n", figure, NameOf(mode),
                connections, static_cast<unsigned long long>(bytes), point.mb_s, point.cpu_percent,
                point.latency_us);
  out << line;
}

void WriteFigures(Results& results, const std::string& path) {
  std::ofstream out(path);
  out << "figure\tcurve\tconnections\tbytes\tmb_s\tcpu_percent\tlatency_us\n";
  for (const Mode mode : kModes) {
    for (const size_t connections : kConnections) {
      for (const uint64_t size : Sizes()) {
        Write(out, "bandwidth", mode, connections, size,
              results.Bandwidth(mode, connections, size));
      }
    }
    for (size_t connections = 1; connections <= 8; ++connections) {
      for (const uint64_t size : {64 * kKib, 1024 * kKib}) {
        Write(out, "connections", mode, connections, size,
              results.Bandwidth(mode, connections, size));
      }
    }
    for (const auto sizes : {SmallSizes(), LargeSizes()}) {
      for (const uint64_t size : sizes) {
        Write(out, "latency", mode, 1, size, results.Latency(mode, size));
      }
    }
  }
}

void WriteStatements(Results& results, const std::string& path) {
  std::ofstream out(path);
  out << "| where | sentence | paper | ours | tolerance | within |\n|---|---|---|---|---|---|\n";
  for (const Statement& one : Judge(results)) {
    out << "| " << one.section << " | " << one.sentence << " | " << one.paper << " | " << one.ours
        << " | " << one.tolerance << " | " << ToString(one.verdict) << " |\n";
  }
}

int Run(const std::string& testbed, const std::string& folder) {
  Results results(Require(ReadParameters(testbed)));
  WriteFigures(results, folder + "/figures.tsv");
  WriteStatements(results, folder + "/statements.md");
  return 0;
}

}  // namespace
}  // namespace esdp::paper

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: paper TESTBED.txtpb FOLDER\n");
    return 2;
  }
  try {
    return esdp::paper::Run(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "paper: %s\n", error.what());
    return 1;
  }
}
