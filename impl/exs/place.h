#ifndef ESDP_IMPL_EXS_PLACE_H_
#define ESDP_IMPL_EXS_PLACE_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "impl/exs/helper.h"
#include "impl/provider/progress/socket_pair.h"

namespace esdp::exs {

// What holds the number of a socket: an end of a pair, of which the other end hangs up once the
// program has closed the number and all copies of it. It shows the system what poll is to say.
//
//   Owns:     the number until it is given up; the other end.
//   Threads:  any; the pair is its user's to lock.
//   Blocks:   never.
//   Units:    -
//   Errors:   null with errno.
class Place {
 public:
  // A new number, close-on-exec.
  static std::unique_ptr<Place> Open();
  // The number of another descriptor, which that gives up; its flags stay.
  static std::unique_ptr<Place> OpenOver(int number);
  ~Place();
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  int number() const { return number_; }
  // Whether the number is still this one's.
  bool Holds() const;
  // It is the process's again. False: it was before.
  bool GiveUp();
  // The same once somebody else has closed it.
  bool NoteClosed() { return !given_up_.exchange(true); }
  // Calls once, on the helper's thread, when all copies of the number are closed.
  void Watch(Helper& helper, std::function<void()> closed);
  void StopWatching();

  provider::SocketPair& pair() { return pair_; }

 private:
  Place() = default;
  bool Note(int number);

  provider::SocketPair pair_;
  int number_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  std::atomic<bool> given_up_{false};
  std::atomic<Helper*> watched_by_{nullptr};
  uint64_t watch_name_ = 0;
};

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_PLACE_H_
