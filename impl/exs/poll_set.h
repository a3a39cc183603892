#ifndef ESDP_IMPL_EXS_POLL_SET_H_
#define ESDP_IMPL_EXS_POLL_SET_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "impl/exs/library.h"
#include "impl/exs/operation.h"
#include "impl/exs/plain_listener.h"

namespace esdp::exs {

// A PollSet carries out one exs_poll: sockets of this library are asked below, other descriptors by
// an epoll set, each under a duplicate of its number, so that what the program does with it
// disturbs nothing.
//
//   Owns:     the duplicates. The vector is the application's, and is written once, before the
//             event.
//   Threads:  Make and Stop any; the rest is the helper's thread.
//   Blocks:   never.
//   Units:    -
//   Errors:   an errno, 0 for none.
class PollSet : public std::enable_shared_from_this<PollSet> {
 public:
  // `operation` has its slot in `queue`.
  static int Make(Library& library, std::shared_ptr<Queue> queue, const Operation& operation,
                  exs_pollfd_t* fds, int count);
  ~PollSet();
  PollSet(const PollSet&) = delete;
  PollSet& operator=(const PollSet&) = delete;

  exs_ahandle_t handle() const { return operation_.handle; }
  bool Has(int fd) const;
  // On the helper's thread: there may be something to tell.
  void LookAgain();
  // Ends with ECANCELED.
  void Stop();

 private:
  struct Entry {
    short events = 0;
    short ready = 0;
    int number = -1;
    std::shared_ptr<ExsSocket> own = {};
    std::shared_ptr<PlainListener> listener = {};  // which may have taken connections already
    OpId op = OpId::kNone;
    int duplicate = -1;  // of any other descriptor
    uint64_t name = 0;   // that the helper knows it by
  };

  PollSet(Library& library, std::shared_ptr<Queue> queue, const Operation& operation,
          exs_pollfd_t* fds)
      : library_(library), queue_(std::move(queue)), operation_(operation), fds_(fds) {}
  int Add(const exs_pollfd_t& asked);
  void Start();
  void AskOwn(size_t place);
  void WatchOther(Entry& entry);
  bool LookAtOthers();
  void Finish(int error);
  void MaybeConclude();

  Library& library_;
  const std::shared_ptr<Queue> queue_;
  const Operation operation_;
  exs_pollfd_t* const fds_;
  std::vector<Entry> entries_;
  int outstanding_ = 0;  // asked below
  bool finishing_ = false;
  bool concluded_ = false;
  int error_ = 0;
};

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_POLL_SET_H_
