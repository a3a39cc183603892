// Measures what the SDP paper's figures show on a simulated test-bed, and judges its statements.
//
//   paper TESTBED.txtpb                    prints what esdp would give there
//   paper TESTBED.txtpb FOLDER             writes figures.tsv there
//   paper TESTBED.txtpb FOLDER judge       and statements.md, goals.md, cpu.md
//   paper TESTBED.txtpb FOLDER sensitivity writes sensitivity.md, which takes some minutes

#include <cstdio>
#include <exception>
#include <fstream>
#include <string>

#include "tests/bench/paper/goals.h"
#include "tests/bench/paper/pair.h"
#include "tests/bench/paper/results.h"
#include "tests/bench/paper/sensitivity.h"
#include "tests/bench/paper/statements.h"
#include "tests/bench/paper/text.h"
#include "tools/testbed/parameters.h"

namespace esdp::paper {
namespace {

constexpr Mode kModes[] = {Mode::kBuffered, Mode::kZeroCopy};
constexpr Means kMeans[] = {Means::kCopied, Means::kRead, Means::kWritten, Means::kAdaptive};

const char* NameOf(Mode mode) { return mode == Mode::kBuffered ? "BCopy" : "ZCopy"; }
const char* NameOf(Means means) {
  switch (means) {
    case Means::kCopied:
      return "copied";
    case Means::kRead:
      return "read";
    case Means::kWritten:
      return "written";
    case Means::kAdaptive:
      return "adaptive";
  }
  return "unknown";
}

// One line for each point: figure, curve, connections or operations, bytes, MB/s, CPU, us.
template <typename Curve>
void Write(std::ofstream& out, const char* figure, Curve curve, size_t connections, uint64_t bytes,
           const Point& point) {
  char line[160];
  std::snprintf(line, sizeof(line), "%s\t%s\t%zu\t%llu\t%.1f\t%.1f\t%.2f\n", figure, NameOf(curve),
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
  for (const Means means : kMeans) {
    for (const size_t operations : kConnections) {
      for (const uint64_t size : Sizes()) {
        for (const bool spins : {false, true}) {
          if (means != Means::kRead && !spins) continue;
          Write(out, spins ? "operations" : "operations, sleeping", means, operations, size,
                results.Asynchronous(means, operations, spins, size));
        }
      }
    }
  }
}

void WriteGoals(Results& results, const std::string& path) {
  std::ofstream out(path);
  out << "| what | wanted | ours | reached |\n|---|---|---|---|\n";
  for (const Goal& one : JudgeGoals(results)) out << ToRow(one) << "\n";
}

void WriteCpu(Results& results, const std::string& path) {
  std::ofstream out(path);
  out << "| operations | bytes | CPU of so many sockets | polling | sleeping at once | least |\n"
         "|---|---|---|---|---|---|\n";
  for (const Share& one : CompareCpu(results)) out << ToRow(one) << "\n";
}

void WriteSensitivity(const fabric::sim::testbed::Parameters& parameters, const std::string& path) {
  std::ofstream out(path);
  out << "| number | as | statements that then fail |\n|---|---|---|\n";
  for (const Loss& loss : FindLosses(parameters)) {
    if (loss.lost.empty()) continue;
    out << "| `" << loss.parameter << "` | " << Format("%.4g", loss.value) << " |";
    for (const std::string& id : loss.lost) out << " " << id;
    out << " |\n";
  }
}

void WriteStatements(Results& results, const std::string& path) {
  std::ofstream out(path);
  out << "| where | sentence | paper | ours | tolerance | within |\n|---|---|---|---|---|---|\n";
  for (const Statement& one : Judge(results)) out << ToRow(one) << "\n";
}

std::string Cell(const Point& point) {
  return Format(" %.0f MB/s, %.0f %% |", point.mb_s, point.cpu_percent);
}

void PrintOverview(Results& results) {
  std::printf(
      "| bytes | blocking, copied | blocking, zero-copy | 1 operation, read | 8 operations, copied "
      "| "
      "8 operations, read | 8 operations, written |\n|---|---|---|---|---|---|---|\n");
  for (uint64_t size = 4 * kKib; size <= kMib; size *= 4) {
    std::string line = "| " + SizeText(size) + " |";
    for (const Mode mode : kModes) line += Cell(results.Bandwidth(mode, 1, size));
    line += Cell(results.Asynchronous(Means::kRead, 1, true, size));
    for (const Means means : {Means::kCopied, Means::kRead, Means::kWritten}) {
      line += Cell(results.Asynchronous(means, 8, true, size));
    }
    std::printf("%s\n", line.c_str());
  }
}

int Run(const std::string& testbed, const std::string& folder, const std::string& also) {
  const auto parameters = Require(esdp::testbed::ReadParameters(testbed));
  if (folder.empty()) {
    Results results(parameters);
    PrintOverview(results);
    return 0;
  }
  if (also == "sensitivity") {
    WriteSensitivity(parameters, folder + "/sensitivity.md");
    return 0;
  }
  Results results(parameters);
  WriteFigures(results, folder + "/figures.tsv");
  if (also != "judge") return 0;
  WriteStatements(results, folder + "/statements.md");
  WriteGoals(results, folder + "/goals.md");
  WriteCpu(results, folder + "/cpu.md");
  return 0;
}

}  // namespace
}  // namespace esdp::paper

int main(int argc, char** argv) {
  const std::string also = argc > 3 ? argv[3] : "";
  if (argc < 2 || argc > 4 || (!also.empty() && also != "judge" && also != "sensitivity")) {
    std::fprintf(stderr, "usage: paper TESTBED.txtpb [FOLDER [judge | sensitivity]]\n");
    return 2;
  }
  try {
    return esdp::paper::Run(argv[1], argc > 2 ? argv[2] : "", also);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "paper: %s\n", error.what());
    return 1;
  }
}
