#ifndef ESDP_IMPL_EXS_PLAIN_STREAM_H_
#define ESDP_IMPL_EXS_PLAIN_STREAM_H_

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "impl/exs/operation.h"
#include "impl/exs/queue.h"
#include "impl/exs/transfer.h"

namespace esdp::exs {

class Library;

// A PlainStream carries out what is posted on a connected TCP socket of the program, which is no
// SDP: by calls that do not wait, and where these would, by the helper.
//
//   Owns:     duplicates of the number while something waits. The number is the program's.
//   Threads:  any.
//   Blocks:   where reading a file does.
//   Units:    bytes.
//   Errors:   an errno, 0 for none.
class PlainStream : public std::enable_shared_from_this<PlainStream> {
 public:
  // Null with errno.
  static std::shared_ptr<PlainStream> Make(Library& library, int number);
  PlainStream(const PlainStream&) = delete;
  PlainStream& operator=(const PlainStream&) = delete;

  int number() const { return number_; }
  // Whether the number is still that of the socket.
  bool HoldsNumber() const;
  // `operation` has its slot in `queue`.
  int Post(std::shared_ptr<Queue> queue, const Operation& operation, Transfer transfer);
  // Behind what is being sent.
  int Shutdown(std::shared_ptr<Queue> queue, const Operation& operation);
  // Behind what is being sent, or with `aborts` at once, by a reset. Frees the number.
  int Close(std::shared_ptr<Queue> queue, const Operation& operation, bool aborts);
  // The same unheard: the number is free at once.
  int CloseUnheard(bool aborts);
  // Those with that handle, or all, end; how many.
  int Cancel(bool by_handle, exs_ahandle_t handle);
  // The number is about to be closed by close(2): all end.
  void OnClose();

 private:
  struct Waiting {
    std::shared_ptr<Queue> queue;
    Operation operation;
    Transfer transfer = {};
    size_t next = 0;     // part
    uint64_t moved = 0;  // bytes
    uint32_t flags = 0;  // of the event
  };
  struct Lane {
    std::deque<Waiting> waiting;
    OwnedFd fd = {};    // the duplicate that is watched
    uint64_t name = 0;  // that the helper knows it by
    bool watched = false;
  };
  // What came of an attempt: -1, it has to wait; or an errno.
  static constexpr int kWait = -1;

  PlainStream(Library& library, int number) : library_(library), number_(number) {}
  Lane& LaneOf(Way way) { return lanes_[static_cast<size_t>(way)]; }
  int Add(Way way, Waiting waiting);
  int BeginClose(bool aborts);
  void FreeNumber();
  void Step(Way way);
  void OnReady(Way way);
  int Attempt(Way way, int fd, Waiting& front);
  int SendParts(int fd, Waiting& front);
  int SendSome(int fd, Waiting& front, Part& part);
  int ReceiveParts(int fd, Waiting& front);
  int Peek(int fd, Waiting& front);
  void Tell(Waiting& waiting, int error);
  bool Watch(Way way);
  void Unwatch(Way way);
  void CheckNumberLater();
  void EndAll(Way way, int error);
  void Announce();

  Library& library_;
  const int number_;
  dev_t device_ = 0;
  ino_t inode_ = 0;

  std::mutex mutex_;
  std::array<Lane, 2> lanes_;
  int failed_ = 0;  // what the connection has ended with
  bool closing_ = false;
  bool freed_ = false;  // the number is the process's
  bool checking_ = false;
  std::vector<std::shared_ptr<Queue>> told_;  // to be announced without the lock
};

// Those that something was posted on.
//
//   Owns:     them, until their numbers are closed.
//   Threads:  any.
//   Blocks:   never.
//   Units:    -
//   Errors:   an errno.
class PlainStreams {
 public:
  // Null where nothing was posted on what the number is now.
  std::shared_ptr<PlainStream> Find(int number);
  // Made where there is none. Null with errno: EOPNOTSUPP for what is no connected TCP socket.
  std::shared_ptr<PlainStream> FindOrMake(Library& library, int number);
  void Remove(const PlainStream& stream);

 private:
  std::mutex mutex_;
  std::unordered_map<int, std::shared_ptr<PlainStream>> streams_;
};

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_PLAIN_STREAM_H_
