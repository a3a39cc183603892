#ifndef ESDP_TESTS_BENCH_PAPER_GOALS_H_
#define ESDP_TESTS_BENCH_PAPER_GOALS_H_

#include <string>
#include <vector>

#include "tests/bench/paper/results.h"

namespace esdp::paper {

// What goes beyond the paper: its expectation of asynchronous sockets, its future work.
struct Goal {
  std::string id;
  std::string what;
  std::string wanted;
  std::string ours;
  bool reached = false;
};

// A line of a table in Markdown.
std::string ToRow(const Goal& goal);

std::vector<Goal> JudgeGoals(Results& results);

}  // namespace esdp::paper

#endif  // ESDP_TESTS_BENCH_PAPER_GOALS_H_
