#include "tools/esdp_files/names.h"

#include <array>
#include <cinttypes>
#include <cstdio>

namespace esdp_files {
namespace {

constexpr std::string_view kPartBegin = ".esdp-";
constexpr std::string_view kPartEnd = ".part";
constexpr std::string_view kSumsEnd = ".sums";
constexpr size_t kPartDigits = 16;

bool HasPart(std::string_view name, std::string_view wanted) {
  while (true) {
    const size_t slash = name.find('/');
    if (name.substr(0, slash) == wanted) return true;
    if (slash == std::string_view::npos) return false;
    name.remove_prefix(slash + 1);
  }
}

// FNV-1a, finished so that every bit counts. Names that meet share a file, whose bytes nobody
// mistakes: its lock and its size are looked at, and a whole file is renamed only by who wrote it.
uint64_t Mix(uint64_t hash, std::string_view bytes) {
  for (const char byte : bytes) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3u;
  hash = (hash ^ (hash >> 32)) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 29);
}

}  // namespace

absl::Status CheckName(std::string_view name) {
  if (name.size() > kNameBytesMax) {
    return absl::InvalidArgumentError("the name is longer than 4096 bytes");
  }
  if (name.find('\0') != std::string_view::npos) {
    return absl::InvalidArgumentError("the name has a NUL");
  }
  if (name.starts_with('/')) {
    return absl::PermissionDeniedError("the name is absolute: names begin at the root served");
  }
  if (HasPart(name, "..")) return absl::PermissionDeniedError("the name goes up");
  return absl::OkStatus();
}

absl::Status CheckNewName(std::string_view name) {
  if (absl::Status status = CheckName(name); !status.ok()) return status;
  const std::string last = Split(name).last;
  if (last.empty() || last == ".") return absl::InvalidArgumentError("that is no name of a file");
  if (IsPartName(last)) return absl::InvalidArgumentError("such names are the server's own");
  return absl::OkStatus();
}

std::string PartName(std::string_view last, uint64_t tag, uint64_t size) {
  uint64_t hash = Mix(0xcbf29ce484222325u, last);
  hash = Mix(hash, {reinterpret_cast<const char*>(&tag), sizeof tag});
  hash = Mix(hash, {reinterpret_cast<const char*>(&size), sizeof size});
  std::array<char, kPartDigits + 1> digits{};
  std::snprintf(digits.data(), digits.size(), "%016" PRIx64, hash);
  return std::string(kPartBegin) + digits.data() + std::string(kPartEnd);
}

std::string SumsName(std::string_view part) {
  part.remove_suffix(kPartEnd.size());
  return std::string(part) + std::string(kSumsEnd);
}

bool IsPartName(std::string_view last) {
  static_assert(kPartEnd.size() == kSumsEnd.size());
  return last.size() == kPartBegin.size() + kPartDigits + kPartEnd.size() &&
         last.starts_with(kPartBegin) && (last.ends_with(kPartEnd) || last.ends_with(kSumsEnd));
}

SplitName Split(std::string_view name) {
  const size_t slash = name.rfind('/');
  if (slash == std::string_view::npos) return {"", std::string(name)};
  return {std::string(name.substr(0, slash)), std::string(name.substr(slash + 1))};
}

}  // namespace esdp_files
