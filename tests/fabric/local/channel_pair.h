#ifndef ESDP_TESTS_FABRIC_LOCAL_CHANNEL_PAIR_H_
#define ESDP_TESTS_FABRIC_LOCAL_CHANNEL_PAIR_H_

#include <sys/socket.h>

#include <array>
#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "impl/fabric/local/channel.h"

namespace esdp::fabric::local {

// Both ends of a queue pair's memory, in one process. `bell` is the first one's.
inline std::array<std::unique_ptr<Channel>, 2> MakeChannelPair(
    const std::shared_ptr<SharedBell>& bell = std::make_shared<SharedBell>()) {
  std::array<int, 2> sockets{-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets.data()),
            0);
  WritableMemory first = *Channel::MakeBlock();
  WritableMemory second = *Channel::MakeBlock();
  Descriptor one(sockets[0]);
  Descriptor two(sockets[1]);
  return {*Channel::Make(std::move(one), std::move(first.mapping), second.file, bell),
          *Channel::Make(std::move(two), std::move(second.mapping), first.file,
                         std::make_shared<SharedBell>())};
}

}  // namespace esdp::fabric::local

#endif  // ESDP_TESTS_FABRIC_LOCAL_CHANNEL_PAIR_H_
