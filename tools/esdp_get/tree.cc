#include "tools/esdp_get/tree.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <deque>
#include <utility>

namespace esdp_get {

namespace wire = esdp_files::wire;

namespace {

// Deeper than any path that the system takes: a server that has no end to its folders.
constexpr size_t kPathBytesMax = 4096;

std::string Join(const std::string& folder, const std::string& name) {
  return folder.empty() || folder.ends_with('/') ? folder + name : folder + "/" + name;
}

// Where a link leads, as the server follows it.
absl::StatusOr<bool> IsFile(Connection& connection, const std::string& name) {
  wire::Request request;
  request.mutable_stat()->set_name(name);
  const auto answer = connection.Get(std::move(request));
  if (!answer.ok()) return answer.status();
  return answer->status() == wire::OK && answer->kind() == wire::FILE;
}

}  // namespace

absl::Status ListFolder(Connection& connection, const std::string& name,
                        std::vector<wire::Entry>& entries) {
  uint64_t cursor = 0;
  do {
    wire::Request request;
    request.mutable_list()->set_name(name);
    request.mutable_list()->set_cursor(cursor);
    auto answer = connection.Get(std::move(request));
    if (!answer.ok()) return answer.status();
    if (answer->status() != wire::OK) return StatusOf(*answer);
    for (wire::Entry& entry : *answer->mutable_entries()) {
      if (!IsPlainName(entry.name())) {
        return absl::DataLossError("the server lists a name that is none");
      }
      entries.push_back(std::move(entry));
    }
    cursor = answer->cursor();
  } while (cursor != 0);
  std::sort(entries.begin(), entries.end(), [](const wire::Entry& one, const wire::Entry& other) {
    return one.name() < other.name();
  });
  return absl::OkStatus();
}

bool IsPlainName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

absl::Status ListTree(Connection& connection, const std::string& name, Tree& tree) {
  std::deque<std::string> open = {""};
  while (!open.empty()) {
    const std::string folder = std::move(open.front());
    open.pop_front();
    std::vector<wire::Entry> entries;
    absl::Status status =
        ListFolder(connection, folder.empty() ? name : Join(name, folder), entries);
    if (!status.ok()) return status;
    for (const wire::Entry& entry : entries) {
      const std::string path = Join(folder, entry.name());
      if (path.size() > kPathBytesMax) return absl::DataLossError("the folders there have no end");
      if (entry.kind() == wire::FOLDER) {
        tree.folders.push_back(path);
        open.push_back(path);
        continue;
      }
      bool is_file = entry.kind() == wire::FILE;
      if (entry.kind() == wire::LINK) {
        const auto leads_to_file = IsFile(connection, Join(name, path));
        if (!leads_to_file.ok()) return leads_to_file.status();
        is_file = *leads_to_file;
      }
      (is_file ? tree.files : tree.passed_over).push_back(path);
    }
  }
  return absl::OkStatus();
}

std::string Printable(std::string_view name) {
  std::string text;
  for (const char byte : name) {
    const auto value = static_cast<unsigned char>(byte);
    constexpr unsigned char kSpace = 0x20;
    constexpr unsigned char kDelete = 0x7f;
    if (value >= kSpace && value != kDelete && byte != '\\') {
      text += byte;
      continue;
    }
    std::array<char, 5> escaped{};
    std::snprintf(escaped.data(), escaped.size(), "\\x%02x", value);
    text += escaped.data();
  }
  return text;
}

}  // namespace esdp_get
