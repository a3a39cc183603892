#ifndef ESDP_TOOLS_ESDP_DIAG_REPORT_H_
#define ESDP_TOOLS_ESDP_DIAG_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "esdp/address.h"

namespace esdp_diag {

struct Question {
  std::string fabric = "auto";
  std::string root = "/";  // where /sys is looked for
  std::optional<esdp::Address> address;
  bool connect = false;
};

// What is printed, the names of the sections that fit, and whether the connection came about.
struct Report {
  std::string text;
  std::vector<std::string> troubles;
  bool connected = true;
};

Report Look(const Question& question);

}  // namespace esdp_diag

#endif  // ESDP_TOOLS_ESDP_DIAG_REPORT_H_
