#ifndef ESDP_TESTS_BENCH_PAPER_STATEMENTS_H_
#define ESDP_TESTS_BENCH_PAPER_STATEMENTS_H_

#include <string>
#include <vector>

#include "tests/bench/paper/results.h"

namespace esdp::paper {

enum class Verdict : uint8_t {
  kWithin,   // ours is what the sentence says, within the tolerance
  kOutside,  // it is not
  kInput,    // the sentence describes the test-bed: the model is given it
};
const char* ToString(Verdict verdict);

// A sentence of the paper that has a number in it, and what is measured for it.
struct Statement {
  std::string id;  // short, for tests and sensitivity
  std::string section;
  std::string sentence;
  std::string paper;
  std::string ours;
  std::string tolerance;
  Verdict verdict = Verdict::kInput;
};

// A line of a table in Markdown.
std::string ToRow(const Statement& statement);

// All of them, in the order of the paper.
std::vector<Statement> Judge(Results& results);

}  // namespace esdp::paper

#endif  // ESDP_TESTS_BENCH_PAPER_STATEMENTS_H_
