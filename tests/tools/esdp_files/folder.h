#ifndef ESDP_TESTS_TOOLS_ESDP_FILES_FOLDER_H_
#define ESDP_TESTS_TOOLS_ESDP_FILES_FOLDER_H_

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ios>
#include <string>

namespace esdp_files {

// A folder for files of one test.
class TestFolder {
 public:
  TestFolder() {
    std::string path = std::filesystem::temp_directory_path() / "esdp_files.XXXXXX";
    path_ = mkdtemp(path.data());
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::string Path(const std::string& name) const { return path_ + "/" + name; }
  void MakeFolder(const std::string& name) const { std::filesystem::create_directory(Path(name)); }
  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(Path(name), std::ios::binary) << content;
  }
  std::string Read(const std::string& name) const {
    std::string content(std::filesystem::file_size(Path(name)), '\0');
    std::ifstream(Path(name), std::ios::binary)
        .read(content.data(), static_cast<std::streamsize>(content.size()));
    return content;
  }

 private:
  std::string path_;
};

}  // namespace esdp_files

#endif  // ESDP_TESTS_TOOLS_ESDP_FILES_FOLDER_H_
