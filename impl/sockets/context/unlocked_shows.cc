#include "impl/sockets/context/unlocked_shows.h"

#include <new>
#include <utility>

#include "impl/sockets/stream/stream_state.h"

namespace esdp::sockets {

bool UnlockedShows::Add(std::shared_ptr<StreamState> stream) try {
  const std::lock_guard lock(mutex_);
  streams_.push_back(std::move(stream));
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

// One after the other, so that no list is made anew each time.
void UnlockedShows::ShowAll() {
  for (;;) {
    std::shared_ptr<StreamState> stream;
    {
      const std::lock_guard lock(mutex_);
      if (streams_.empty()) return;
      stream = std::move(streams_.back());
      streams_.pop_back();
    }
    stream->polls().ShowChange();
  }
}

}  // namespace esdp::sockets
