#ifndef ESDP_TOOLS_ESDP_SERVE_WHOLE_DIGEST_H_
#define ESDP_TOOLS_ESDP_SERVE_WHOLE_DIGEST_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "tools/esdp_files/digest.h"
#include "tools/esdp_serve/replies.h"

namespace esdp_serve {

// The SHA-256 of a whole file, a part at a time: workers have others to serve, too.
//
//   Owns:     what it has summed; the open file, with others.
//   Threads:  AddNext on one at a time; Cancel on any; the rest behind the last AddNext.
//   Blocks:   AddNext, for one part.
//   Units:    bytes.
//   Errors:   status(): FAILED, it cannot be read or is shorter by now; CHANGED, it is another one than
//             when it was opened; CANCELLED.
class WholeDigest {
 public:
  explicit WholeDigest(std::shared_ptr<const OpenedFile> opened) : opened_(std::move(opened)) {}

  void AddNext();
  void Cancel() { cancelled_ = true; }
  bool done() const { return done_; }
  esdp_files::wire::Status status() const { return status_; }
  const esdp_files::Sum& sum() const { return sum_; }

 private:
  void End(esdp_files::wire::Status status);

  const std::shared_ptr<const OpenedFile> opened_;
  esdp_files::Digest digest_;
  uint64_t offset_ = 0;
  esdp_files::Sum sum_{};
  esdp_files::wire::Status status_ = esdp_files::wire::OK;
  bool done_ = false;
  std::atomic<bool> cancelled_ = false;
};

}  // namespace esdp_serve

#endif  // ESDP_TOOLS_ESDP_SERVE_WHOLE_DIGEST_H_
