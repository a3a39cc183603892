#include "impl/sockets/blocking/readiness_pair.h"

#include <cerrno>
#include <cstring>
#include <string>

#include "esdp/operation.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/queue/event_queue_state.h"
#include "impl/sockets/stream/stream_state.h"

namespace esdp::sockets {

absl::StatusOr<std::shared_ptr<ReadinessPair>> ReadinessPair::Open(
    StreamState& stream, std::shared_ptr<QueueState> sends) {
  auto opened = std::make_shared<ReadinessPair>(stream, std::move(sends));
  if (opened->pair_.Open()) return opened;
  return MakeError(ErrorKind::kMemory,
                   std::string("no descriptor for the readiness: ") + strerror(errno));
}

std::shared_ptr<ReadinessPair> ReadinessPair::Over(StreamState& stream,
                                                   std::shared_ptr<QueueState> sends,
                                                   provider::SocketPair::Ends ends) {
  auto over = std::make_shared<ReadinessPair>(stream, std::move(sends));
  over->pair_.Adopt(ends.shown, ends.hidden);
  return over;
}

provider::SocketPair::Ends ReadinessPair::Release() {
  const std::lock_guard lock(mutex_);
  released_ = true;
  return pair_.Release();
}

// Nobody waits for who shows something, and that one shows this, too: whoever has the lock looks once
// more after it has given it back.
void ReadinessPair::Show() {
  while (pending_.fetch_or(0) != 0) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return;
    const uint32_t pending = pending_.exchange(0);
    if ((pending & kChange) != 0) {
      ShowInput(/*arrived=*/edges_.load(std::memory_order_relaxed));
    } else if (pending != 0) {
      ShowRoom();
    }
  }
}

// What the connection itself would take is no measure: the ends of sends, which make room, come
// behind that. As of TCP there is room again once a third is free, so that a full sender is not
// called for each piece.
void ReadinessPair::ShowRoom() {
  if (released_) return;
  const size_t ended = sends_->events();
  const bool freed = ended > 0 && 3 * ended >= own_.sends;
  const bool room = own_.room || !stream_.connected() || freed;
  pair_.ShowRoom(room || stream_.write_shut());
}

// One edge may have told of the last bytes and of the end. Who reads by edges may stop at a read that
// was not filled: so the end is an edge once more when nothing is left before it.
void ReadinessPair::ShowPeerEnd() {
  const bool was_behind =
      std::exchange(end_behind_bytes_, own_.readable || stream_.UnreadBytes() > 0);
  pair_.ShowPeerEnd(/*again=*/was_behind && !end_behind_bytes_);
}

void ReadinessPair::ShowInput(bool arrived) {
  if (released_ || pair_.has_ended()) return;
  const uint32_t bits = stream_.polls().Bits();
  const bool shut = stream_.write_shut();
  const bool failed = (bits & kPollFailed) != 0;
  const bool peer_ended = (bits & kPollPeerEnded) != 0;
  const bool readable = own_.readable || (bits & kPollReadable) != 0;
  const bool urgent = own_.urgent || (bits & kPollUrgent) != 0;
  if (urgent) pair_.ShowInput(readable, urgent, arrived);  // no byte goes through behind the end
  if (peer_ended) ShowPeerEnd();  // which is readable as well, and no less than that
  if (!urgent) pair_.ShowInput(readable, urgent, arrived);
  ShowRoom();
  if (failed || (peer_ended && shut) || !stream_.connected()) pair_.ShowEnd(failed);
}

}  // namespace esdp::sockets
