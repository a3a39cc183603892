#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/scenarios/stage.h"

// Every scenario file is played: the lines that begin with '>' are commands, the indented lines
// below each are all that happens then. `--update`, with `bazel run`, writes what happens now.

namespace esdp::sdp::scenarios {
namespace {

constexpr const char* kFolder = "tests/scenarios";
constexpr const char* kIndent = "    ";

std::vector<std::string> Lines(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// The scenario with what happens in place of what it said would. A command that fails says why.
std::vector<std::string> Play(const std::vector<std::string>& lines, bool immediate) {
  Stage stage(immediate);
  std::vector<std::string> played;
  for (const std::string& line : lines) {
    if (line.starts_with(kIndent)) continue;
    played.push_back(line);
    if (!line.starts_with("> ")) continue;
    try {
      for (const std::string& event : stage.Execute(line.substr(2))) {
        played.push_back(kIndent + event);
      }
    } catch (const std::exception& error) {
      played.push_back(std::string(kIndent) + "ERROR: " + error.what());
    }
  }
  return played;
}

std::vector<std::filesystem::path> Scenarios(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

class Scenario : public ::testing::Test {
 public:
  explicit Scenario(std::filesystem::path path) : path_(std::move(path)) {}

  void TestBody() override {
    const std::vector<std::string> said = Lines(path_);
    Compare(said, Play(said, /*immediate=*/true));
    if (!HasFailure()) Compare(said, Play(said, /*immediate=*/false));
  }

 private:
  void Compare(const std::vector<std::string>& said, const std::vector<std::string>& played) {
    for (size_t i = 0; i < std::max(said.size(), played.size()); ++i) {
      const std::string expected = i < said.size() ? said[i] : "(the end)";
      const std::string actual = i < played.size() ? played[i] : "(the end)";
      EXPECT_EQ(actual.find("ERROR"), std::string::npos) << actual;
      ASSERT_EQ(actual, expected)
          << path_.string() << ":" << i + 1
          << "\nto accept: bazel run //tests/scenarios:scenario_test -- --update";
    }
  }

  std::filesystem::path path_;
};

int Update(const std::filesystem::path& folder) {
  for (const std::filesystem::path& path : Scenarios(folder)) {
    const std::vector<std::string> played = Play(Lines(path), /*immediate=*/true);
    std::ofstream file(path);
    for (const std::string& line : played) file << line << '\n';
  }
  return 0;
}

}  // namespace
}  // namespace esdp::sdp::scenarios

int main(int count, char** words) {
  using esdp::sdp::scenarios::Scenario;
  ::testing::InitGoogleTest(&count, words);
  if (count > 1 && std::string(words[1]) == "--update") {
    const char* root = std::getenv("BUILD_WORKSPACE_DIRECTORY");
    return esdp::sdp::scenarios::Update(std::filesystem::path(root != nullptr ? root : ".") /
                                        esdp::sdp::scenarios::kFolder);
  }
  const auto paths = esdp::sdp::scenarios::Scenarios(esdp::sdp::scenarios::kFolder);
  for (const std::filesystem::path& path : paths) {
    ::testing::RegisterTest("ScenarioTest", path.stem().c_str(), nullptr, nullptr, __FILE__,
                            __LINE__, [path]() -> ::testing::Test* { return new Scenario(path); });
  }
  return paths.empty() ? 1 : RUN_ALL_TESTS();
}
