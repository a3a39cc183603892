#include "tools/esdp_serve/request_queue.h"

#include <utility>

namespace esdp_serve {

using esdp_files::wire::Request;

void RequestQueue::Add(std::span<const std::byte> bytes) {
  reader_.Add(bytes);
  Parse();
}

bool RequestQueue::HasPut() const {
  return !requests_.empty() && requests_.back().request.has_put();
}

bool RequestQueue::WantsMore() const {
  return fault_.empty() && requests_.size() < kRequestsMax && !HasPut();
}

void RequestQueue::Pop() {
  requests_.pop_front();
  Parse();
}

void RequestQueue::AwaitResync() {
  requests_.clear();
  awaits_resync_ = true;
  Parse();
}

void RequestQueue::Parse() {
  while (WantsMore()) {
    const auto frame = reader_.Next();
    if (!frame) break;
    Take(*frame);
  }
  if (!fault_.empty()) return;
  if (reader_.bad()) {
    fault_ = "a frame is empty, or longer than 65536 bytes";
  } else if (HasPut() && reader_.left() > 0) {
    fault_ = "bytes behind a Put, before it was answered";
  }
}

void RequestQueue::Take(std::string_view frame) {
  Request request;
  if (!request.ParseFromArray(frame.data(), static_cast<int>(frame.size()))) {
    fault_ = "a frame is no request";
    return;
  }
  if (awaits_resync_) {
    if (!request.has_resync()) return;
    awaits_resync_ = false;
  }
  if (!greeted_ && !request.has_hello()) {
    fault_ = "the first request is not Hello";
    return;
  }
  greeted_ = true;
  if (request.has_cancel()) {
    for (Entry& entry : requests_) {
      entry.cancelled |= entry.request.id() == request.cancel().request();
    }
    return;
  }
  requests_.push_back({std::move(request)});
}

}  // namespace esdp_serve
