#ifndef ESDP_IMPL_EXS_POLLS_H_
#define ESDP_IMPL_EXS_POLLS_H_

#include <memory>
#include <mutex>
#include <vector>

#include "sys/exs.h"

namespace esdp::exs {

class PollSet;

// The exs_polls that are outstanding, to be cancelled.
//
//   Owns:     nothing.
//   Threads:  any.
//   Blocks:   never.
//   Units:    -
//   Errors:   -
class Polls {
 public:
  void Add(std::shared_ptr<PollSet> set);
  void Remove(const PollSet* set);
  // On the helper's thread: those that have the descriptor look again.
  void TellReady(int fd);
  // Asks those that have the descriptor to end, all or those with that handle; how many.
  int Cancel(int fd, bool by_handle, exs_ahandle_t handle);

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<PollSet>> sets_;
};

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_POLLS_H_
