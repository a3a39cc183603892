#ifndef ESDP_IMPL_FABRIC_LOCAL_PEER_PROCESS_H_
#define ESDP_IMPL_FABRIC_LOCAL_PEER_PROCESS_H_

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/types/span.h"
#include "impl/base/bytes.h"
#include "impl/base/shared_memory.h"

namespace esdp::fabric::local {

// 16 bytes that nobody can guess, at an address that a peer is told. Whoever can say what they are
// has read them there: the system lets him read all the memory of this process anyway, and what he
// is shown of it for longer than a moment shows him nothing new.
using Nonce = std::array<uint64_t, 2>;

// The process at the other end, whose memory the system may let us read.
//
//   Owns:     the descriptor by which it is watched.
//   Threads:  not thread-safe.
//   Blocks:   for the copy of what is read.
//   Units:    bytes.
//   Errors:   Read: what the system says; after a refusal it does not try again.
class PeerProcess {
 public:
  PeerProcess() = default;
  // Behind a connected unix socket.
  explicit PeerProcess(int socket);

  // As the system has it; 0 where nobody knows.
  pid_t number() const { return number_; }
  // Not open where it is this process, or where it cannot be watched.
  const Descriptor& watch() const { return watch_; }
  bool IsReadable() const { return process_ > 0; }
  void ForbidReading() { process_ = 0; }

  std::optional<Nonce> ReadNonce(uint64_t address);
  // Reads [address, + the size of all targets) of its memory into the targets, at most 16; how many
  // bytes it was. 0: it cannot be read there.
  size_t Read(absl::Span<const Bytes> targets, uint64_t address);
  // Whether it has not died meanwhile: its number may belong to another one by then.
  bool IsAlive() const;

  static constexpr size_t kTargetsMax = 16;

 private:
  pid_t number_ = 0;
  pid_t process_ = 0;  // 0: nobody knows, or reading is refused
  Descriptor watch_;
};

// Why the system lets no program of this user read another one's memory; empty where it does.
std::string WhyUnreadable();

}  // namespace esdp::fabric::local

#endif  // ESDP_IMPL_FABRIC_LOCAL_PEER_PROCESS_H_
