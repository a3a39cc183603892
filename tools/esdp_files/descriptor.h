#ifndef ESDP_TOOLS_ESDP_FILES_DESCRIPTOR_H_
#define ESDP_TOOLS_ESDP_FILES_DESCRIPTOR_H_

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace esdp_files {

// A descriptor that closes itself.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

inline int64_t ModifiedNs(const struct stat& about) {
  return int64_t{about.st_mtim.tv_sec} * 1'000'000'000 + about.st_mtim.tv_nsec;
}

// Another number once the file is another one, or was written to; as exact as the file system's
// times are. Never 0.
uint64_t EtagOf(const struct stat& about);

}  // namespace esdp_files

#endif  // ESDP_TOOLS_ESDP_FILES_DESCRIPTOR_H_
