#ifndef ESDP_IMPL_FABRIC_SIM_LENT_MESSAGES_H_
#define ESDP_IMPL_FABRIC_SIM_LENT_MESSAGES_H_

#include <algorithm>
#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "impl/fabric/types.h"

namespace esdp::fabric::sim {

// Messages that completions name in place of their receives' memory. Each is spoiled before it
// goes, so that whoever looks at it for too long does not find what it was.
//
//   Owns:     the messages.
//   Threads:  one.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   –
class LentMessages {
 public:
  const std::byte* Lend(QueuePairId queue_pair, std::vector<std::byte> bytes) {
    messages_.push_back({queue_pair, std::move(bytes)});
    return messages_.back().bytes.data();
  }
  void OnPolled(const Completion& completion) {
    if (completion.lent == nullptr) return;
    Find([&](const Message& each) { return each.bytes.data() == completion.lent; })->polled = true;
  }
  // The oldest of those that were polled of this queue pair is not read any more.
  void Return(QueuePairId queue_pair) {
    const auto found =
        Find([&](const Message& each) { return each.polled && each.queue_pair == queue_pair; });
    if (found == messages_.end()) return;
    Spoil(*found);
    messages_.erase(found);
  }
  // None of those that were polled is.
  void ReturnAll() {
    if (messages_.empty()) return;
    for (Message& each : messages_) {
      if (each.polled) Spoil(each);
    }
    std::erase_if(messages_, [](const Message& each) { return each.polled; });
  }

 private:
  struct Message {
    QueuePairId queue_pair = QueuePairId::kNone;
    std::vector<std::byte> bytes;
    bool polled = false;
  };

  template <typename Predicate>
  std::deque<Message>::iterator Find(Predicate predicate) {
    return std::find_if(messages_.begin(), messages_.end(), predicate);
  }
  static void Spoil(Message& message) {
    std::fill(message.bytes.begin(), message.bytes.end(), std::byte{0xdb});
  }

  std::deque<Message> messages_;
};

}  // namespace esdp::fabric::sim

#endif  // ESDP_IMPL_FABRIC_SIM_LENT_MESSAGES_H_
