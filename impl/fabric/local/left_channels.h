#ifndef ESDP_IMPL_FABRIC_LOCAL_LEFT_CHANNELS_H_
#define ESDP_IMPL_FABRIC_LOCAL_LEFT_CHANNELS_H_

#include <memory>
#include <utility>

#include "impl/fabric/local/channel.h"

namespace esdp::fabric::local {

// Channels of queue pairs that have ended, while messages in the other end's block are lent.
//
//   Owns:     the channels.
//   Threads:  not thread-safe.
//   Blocks:   never.
//   Units:    –
//   Errors:   –
class LeftChannels {
 public:
  LeftChannels() = default;
  ~LeftChannels() { Free(); }
  LeftChannels(const LeftChannels&) = delete;
  LeftChannels& operator=(const LeftChannels&) = delete;

  // One of which nothing is lent goes at once.
  void Leave(std::unique_ptr<Channel> channel) {
    if (!channel->IsRead()) return;
    channel->next_ = std::move(first_);
    first_ = std::move(channel);
  }
  // Nothing is lent any more.
  void Free() {
    while (first_ != nullptr) first_ = std::move(first_->next_);
  }

 private:
  std::unique_ptr<Channel> first_;
};

}  // namespace esdp::fabric::local

#endif  // ESDP_IMPL_FABRIC_LOCAL_LEFT_CHANNELS_H_
