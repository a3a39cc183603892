#ifndef ESDP_TOOLS_ESDP_FILES_NAMES_H_
#define ESDP_TOOLS_ESDP_FILES_NAMES_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"

// Names of files as clients say them: bytes, parts with a slash between, relative to the root.

namespace esdp_files {

inline constexpr size_t kNameBytesMax = 4096;

// InvalidArgument for a name that is never looked up: with a NUL, longer than kNameBytesMax;
// PermissionDenied for one that is absolute or goes up. An empty name is the root.
absl::Status CheckName(std::string_view name);

// The same for a file that is to be made: the last part is a name of its own, and none of ours.
absl::Status CheckNewName(std::string_view name);

// What has not come whole lies beside its file under such a name, and is in no list.
std::string PartName(std::string_view last, uint64_t tag, uint64_t size);
// Of what is known of the chunks of such a part.
std::string SumsName(std::string_view part);
// One of both.
bool IsPartName(std::string_view last);

// "a/b" -> "a" and "b"; "b" -> "" and "b".
struct SplitName {
  std::string folder;
  std::string last;
};
SplitName Split(std::string_view name);

}  // namespace esdp_files

#endif  // ESDP_TOOLS_ESDP_FILES_NAMES_H_
