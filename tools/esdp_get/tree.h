#ifndef ESDP_TOOLS_ESDP_GET_TREE_H_
#define ESDP_TOOLS_ESDP_GET_TREE_H_

#include <esdp_files.pb.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "tools/esdp_get/connection.h"

namespace esdp_get {

// Everything in a folder of the server, in the order of names.
absl::Status ListFolder(Connection& connection, const std::string& name,
                        std::vector<esdp_files::wire::Entry>& entries);

// Whether a name from a server can be one in a folder here: no path, nothing that goes up.
bool IsPlainName(std::string_view name);

// What lies below a folder, each folder before what is in it. Paths begin at the folder.
struct Tree {
  std::vector<std::string> folders;
  std::vector<std::string> files;
  std::vector<std::string> passed_over;  // neither
};
absl::Status ListTree(Connection& connection, const std::string& name, Tree& tree);

// For a terminal: what is no letter there does nothing.
std::string Printable(std::string_view name);

}  // namespace esdp_get

#endif  // ESDP_TOOLS_ESDP_GET_TREE_H_
