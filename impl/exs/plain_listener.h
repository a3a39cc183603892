#ifndef ESDP_IMPL_EXS_PLAIN_LISTENER_H_
#define ESDP_IMPL_EXS_PLAIN_LISTENER_H_

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "esdp/socket.h"
#include "impl/exs/operation.h"
#include "impl/exs/queue.h"
#include "impl/exs/transfer.h"

namespace esdp::exs {

class Library;

// A PlainListener takes connections for exs_accept from a TCP socket that the program made with
// socket(2), and that listens: of a connection that comes in the first bytes decide. One whose
// peer begins otherwise than SDP does, or does not begin, is a TCP socket of the program.
//
//   Owns:     connections that no accept has taken. The listening socket is the program's.
//   Threads:  Make, Accept, Cancel and Close any; the rest is the helper's thread.
//   Blocks:   never.
//   Units:    -
//   Errors:   an errno, 0 for none.
class PlainListener : public std::enable_shared_from_this<PlainListener> {
 public:
  // Makes the socket non-blocking: another process may take a connection first. Null with errno.
  static std::shared_ptr<PlainListener> Make(Library& library, int number);
  PlainListener(const PlainListener&) = delete;
  PlainListener& operator=(const PlainListener&) = delete;

  // Whether the number is still that of the socket.
  bool HoldsNumber() const;
  // `operation` has its slots in `queue`.
  int Accept(std::shared_ptr<Queue> queue, const Operation& operation);
  // Those with that handle, or all, end; how many.
  int Cancel(bool by_handle, exs_ahandle_t handle);
  // Ends all, and what nobody has taken is reset. The number stays the caller's to close.
  void Close();
  // A connection waits here for an accept. On the helper's thread.
  bool has_ready() const { return !ready_.empty(); }

 private:
  struct Waiting {
    std::shared_ptr<Queue> queue;
    Operation operation;
  };
  struct Candidate;  // a connection of which it is not known yet what it is
  struct Ready {     // which it is
    Socket sdp = {};
    OwnedFd plain = {};
  };

  PlainListener(Library& library, int number, int family)
      : library_(library), number_(number), family_(family) {}
  void End(int error);
  void DropConnections();
  void Step();
  bool IsOpen();
  int AcceptOne();
  bool AcceptSome();
  void WatchListener();
  void CheckNumberLater();
  void TellReady();
  void TellError(int error);
  void Tell(const exs_event_t& event);
  bool Wanted();
  void Look(const std::shared_ptr<Candidate>& candidate);
  void LookLater(const std::shared_ptr<Candidate>& candidate, size_t need);
  void TakePlain(const std::shared_ptr<Candidate>& candidate);
  void SetUp(const std::shared_ptr<Candidate>& candidate);
  void OnSetUp(const std::shared_ptr<Candidate>& candidate, const Event& event);
  void Drop(const std::shared_ptr<Candidate>& candidate);

  Library& library_;
  const int number_;
  const int family_;
  dev_t device_ = 0;
  ino_t inode_ = 0;

  std::mutex mutex_;
  std::deque<Waiting> waiting_;
  bool ended_ = false;
  std::vector<std::shared_ptr<Queue>> told_;  // to be announced without the lock

  // The helper's thread alone.
  std::vector<std::shared_ptr<Candidate>> candidates_;
  std::deque<Ready> ready_;
  uint64_t watch_name_ = 0;
  bool watching_ = false;
  bool checking_ = false;
};

// Those that exs_accept was called on.
//
//   Owns:     them, until their numbers are closed.
//   Threads:  any.
//   Blocks:   never.
//   Units:    -
//   Errors:   an errno.
class PlainListeners {
 public:
  // Null where exs_accept was not called on what the number is now.
  std::shared_ptr<PlainListener> Find(int number);
  // Made where there is none. Null with errno.
  std::shared_ptr<PlainListener> FindOrMake(Library& library, int number);
  void Remove(int number);

 private:
  std::mutex mutex_;
  std::unordered_map<int, std::shared_ptr<PlainListener>> listeners_;
};

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_PLAIN_LISTENER_H_
