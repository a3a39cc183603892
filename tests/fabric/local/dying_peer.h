#ifndef ESDP_TESTS_FABRIC_LOCAL_DYING_PEER_H_
#define ESDP_TESTS_FABRIC_LOCAL_DYING_PEER_H_

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "tests/fabric/local/raw_end.h"

// A peer in a process of its own that sends until it is killed.

namespace esdp::fabric::local {

constexpr size_t kMessage = 1100;
constexpr size_t kWrite = 20 * 1024;  // bytes that the target copies, where it may
constexpr uint64_t kWriteEvery = 5;   // messages
constexpr uint64_t kWrites = 16;      // places that they take in turn: more than are under way

inline pid_t InChild(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  return child;
}

inline int ExitOf(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

inline void WaitFor(Fabric& fabric) {
  pollfd descriptor{fabric.fd(), POLLIN, 0};
  poll(&descriptor, 1, 10);
}

inline std::byte ByteAt(uint64_t message, size_t offset) {
  return static_cast<std::byte>(((message << 10) + offset) * 0x9e3779b97f4a7c15ull >> 56);
}

// Connects, and sends messages until it is killed, or so many and then disconnects. With some of them go
// writes before them, into the range that the other side's private data names.
class Sender {
 public:
  explicit Sender(uint64_t messages) : messages_(messages) {}

  int Run(const Address& to) {
    (void)fabric_->Connect(queue_pair_, Address{}, to, {}, kTimeInfinite);
    while (true) {
      RendezvousEvent event;
      while (fabric_->PollRendezvous(event)) {
        if (event.type == RendezvousType::kDisconnected) return 1;
        if (event.type != RendezvousType::kEstablished) continue;
        ready_ = true;
        std::memcpy(&target_, event.private_data.data(), sizeof(target_));
      }
      for (; ready_ && free_ > 1 && number_ != messages_; ++number_) {
        if (number_ % kWriteEvery == 0 && !Write()) return 2;
        if (!Send()) return 2;
      }
      if (number_ == messages_ && free_ == kWork && ready_) {
        (void)fabric_->Disconnect(queue_pair_, /*orderly=*/true);
        ready_ = false;
      }
      std::array<Completion, 16> completions;
      const size_t done = fabric_->Poll(absl::MakeSpan(completions));
      free_ += done;
      if (done == 0) WaitFor(*fabric_);
    }
  }

 private:
  static constexpr size_t kWork = 64;

  bool Send() {
    std::byte* const at = memory_.data() + number_ % kWork * kMessage;
    const size_t bytes = number_ % 3 == 0 ? 16 : kMessage;
    for (size_t i = 0; i < bytes; ++i) at[i] = ByteAt(number_, i);
    return Post(at, bytes, Opcode::kSend, {});
  }
  bool Write() {
    const size_t place = number_ / kWriteEvery % kWrites * kWrite;
    std::byte* const at = memory_.data() + kWork * kMessage + place;
    for (size_t i = 0; i < kWrite; ++i) at[i] = ByteAt(number_, i);
    RemoteRange to = target_;
    to.address += place;
    return Post(at, kWrite, Opcode::kWrite, to);
  }
  bool Post(std::byte* at, size_t bytes, Opcode opcode, const RemoteRange& remote) {
    const ScatterEntry entry{region_, at, static_cast<uint32_t>(bytes)};
    const SendWork work{.opcode = opcode, .entries = &entry, .entry_count = 1, .remote = remote};
    --free_;
    return fabric_->PostSend(queue_pair_, {&work, 1}).ok();
  }

  const uint64_t messages_;
  std::unique_ptr<Fabric> fabric_ = *MakeLocalFabric();
  std::vector<std::byte> memory_ = std::vector<std::byte>(kWork * kMessage + kWrites * kWrite);
  RegionId region_ = *fabric_->Register(memory_.data(), memory_.size(), {});
  QueuePairId queue_pair_ = *fabric_->CreateQueuePair({});
  RemoteRange target_{};
  bool ready_ = false;
  uint64_t number_ = 0;
  size_t free_ = kWork;
};

constexpr uint64_t kWithoutEnd = UINT64_MAX;

inline int SendMessages(const Address& to, uint64_t messages) { return Sender(messages).Run(to); }

}  // namespace esdp::fabric::local

#endif  // ESDP_TESTS_FABRIC_LOCAL_DYING_PEER_H_
