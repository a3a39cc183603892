#ifndef ESDP_TOOLS_ESDP_DIAG_TROUBLES_H_
#define ESDP_TOOLS_ESDP_DIAG_TROUBLES_H_

#include <string>
#include <string_view>
#include <vector>

namespace esdp_diag {

extern const char kPage[];  // docs/troubleshooting.md

// One section of the page: "## name: title", and what follows it.
struct Trouble {
  std::string name;
  std::string title;
  std::string text;  // for a terminal: commands indented, without marks
};

std::vector<Trouble> ReadPage(std::string_view page);

}  // namespace esdp_diag

#endif  // ESDP_TOOLS_ESDP_DIAG_TROUBLES_H_
