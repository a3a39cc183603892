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

// The CPU of one socket with n operations beside that of n sockets that block: 1 is as much.
struct Share {
  size_t operations = 0;
  uint64_t bytes = 0;
  double sockets_percent = 0;
  double polling = 0;
  double sleeping = 0;
  // No program that waits can do with less: what the protocol takes, and to be woken once for all
  // that are outstanding.
  double least = 0;
};

// A line of a table in Markdown.
std::string ToRow(const Goal& goal);
std::string ToRow(const Share& share);

std::vector<Share> CompareCpu(Results& results);
std::vector<Goal> JudgeGoals(Results& results);

}  // namespace esdp::paper

#endif  // ESDP_TESTS_BENCH_PAPER_GOALS_H_
