#include "impl/exs/polls.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "impl/exs/poll_set.h"

namespace esdp::exs {

void Polls::Add(std::shared_ptr<PollSet> set) {
  const std::lock_guard lock(mutex_);
  sets_.push_back(std::move(set));
}

void Polls::Remove(const PollSet* set) {
  std::shared_ptr<PollSet> last;  // goes without the lock
  const std::lock_guard lock(mutex_);
  const auto found =
      std::ranges::find_if(sets_, [set](const auto& each) { return each.get() == set; });
  if (found == sets_.end()) return;
  last = std::move(*found);
  sets_.erase(found);
}

void Polls::TellReady(int fd) {
  std::vector<std::shared_ptr<PollSet>> asked;  // each may end, and go
  {
    const std::lock_guard lock(mutex_);
    std::ranges::copy_if(sets_, std::back_inserter(asked),
                         [fd](const auto& each) { return each->Has(fd); });
  }
  for (const auto& each : asked) each->LookAgain();
}

int Polls::Cancel(int fd, bool by_handle, exs_ahandle_t handle) {
  const std::lock_guard lock(mutex_);
  int asked = 0;
  for (const std::shared_ptr<PollSet>& each : sets_) {
    if (!each->Has(fd) || (by_handle && each->handle() != handle)) continue;
    each->Stop();
    ++asked;
  }
  return asked;
}

}  // namespace esdp::exs
