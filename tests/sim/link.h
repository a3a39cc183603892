#ifndef ESDP_TESTS_SIM_LINK_H_
#define ESDP_TESTS_SIM_LINK_H_

#include <array>
#include <cstdint>
#include <string>

#include "tests/sim/checkers/findings.h"
#include "tests/sim/checkers/stream_checker.h"

namespace esdp::simulation {

// One connection from outside: its two directions, and whether anything has happened to it that
// excuses an end before its time.
struct Link {
  Link(Findings& findings, uint16_t port)
      : streams{StreamChecker(findings, std::to_string(port) + " to the accepting side"),
                StreamChecker(findings, std::to_string(port) + " to the connecting side")} {}

  // What the connecting side sends; what the accepting side sends.
  std::array<StreamChecker, 2> streams;
  bool hostile = false;    // a message was changed: anything may come of it but harm
  bool disturbed = false;  // it was broken from outside
  bool died = false;       // one of the applications is no more
  bool cut = false;        // one of the applications left before the end
  std::array<bool, 2> ended{};

  bool whole() const { return !hostile && !disturbed && !cut && ended[0] && ended[1]; }
  bool excused() const { return hostile || disturbed || cut; }
};

}  // namespace esdp::simulation

#endif  // ESDP_TESTS_SIM_LINK_H_
