#ifndef ESDP_TOOLS_ESDP_SERVE_REQUEST_QUEUE_H_
#define ESDP_TOOLS_ESDP_SERVE_REQUEST_QUEUE_H_

#include <esdp_files.pb.h>

#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <string_view>

#include "tools/esdp_files/frame.h"

namespace esdp_serve {

inline constexpr size_t kRequestsMax = 16;  // of a client, that wait; with the one being answered

// What a client has asked and not got yet: its bytes cut into requests, in order. The first one stays
// until it has been answered.
//
//   Owns:     the requests, and the bytes of what is none yet.
//   Threads:  one.
//   Blocks:   never.
//   Units:    -
//   Errors:   fault() tells what the client did wrong, once: nothing behind that is read.
class RequestQueue {
 public:
  // Bytes as they come, while WantsMore().
  void Add(std::span<const std::byte> bytes);
  // Whether there is room, and the client may say something now: behind a Put it may not.
  bool WantsMore() const;

  bool empty() const { return requests_.empty(); }
  const esdp_files::wire::Request& front() const { return requests_.front().request; }
  bool front_is_cancelled() const { return requests_.front().cancelled; }
  void Pop();

  const std::string& fault() const { return fault_; }
  bool greeted() const { return greeted_; }  // the first request, Hello, has come

  // What was asked has no meaning any more; nor has what comes before the next Resync.
  void AwaitResync();
  bool awaits_resync() const { return awaits_resync_; }

 private:
  struct Entry {
    esdp_files::wire::Request request;
    bool cancelled = false;
  };
  void Parse();
  void Take(std::string_view frame);
  bool HasPut() const;

  esdp_files::FrameReader reader_;
  std::deque<Entry> requests_;
  std::string fault_;
  bool greeted_ = false;
  bool awaits_resync_ = false;
};

}  // namespace esdp_serve

#endif  // ESDP_TOOLS_ESDP_SERVE_REQUEST_QUEUE_H_
