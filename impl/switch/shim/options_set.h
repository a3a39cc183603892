#ifndef ESDP_IMPL_SWITCH_SHIM_OPTIONS_SET_H_
#define ESDP_IMPL_SWITCH_SHIM_OPTIONS_SET_H_

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace esdp::switching {

// Of IPPROTO_TCP: they would hold up, or break, what goes over the TCP socket, so a switched
// connection has them to tell and they have no effect.
inline constexpr std::array kKeptOptions = {TCP_NODELAY, TCP_CORK, TCP_QUICKACK, TCP_DEFER_ACCEPT};
// What they are in a socket of which nothing was set.
inline constexpr std::array kKeptOptionsAtFirst = {0, 0, 1, 0};
static_assert(kKeptOptions.size() == kKeptOptionsAtFirst.size());

// Which options of a socket may be others than a new one has. Those that cannot are not asked for,
// which costs a system call each.
//
//   Owns:     nothing.
//   Threads:  any.
//   Blocks:   never.
//   Units:    -
//   Errors:   none.
class OptionsSet {
 public:
  static constexpr unsigned kUrgentInLine = 1u << 8, kReceiveTime = 1u << 9, kSendTime = 1u << 10,
                            kLinger = 1u << 11, kOwner = 1u << 12, kLowMark = 1u << 13;

  static constexpr unsigned Kept(size_t place) { return 1u << place; }

  // The program has set it.
  void Note(int level, int name) { bits_.fetch_or(BitOf(level, name), std::memory_order_relaxed); }
  void NoteOwner() { bits_.fetch_or(kOwner, std::memory_order_relaxed); }
  void NoteLowMark() { bits_.fetch_or(kLowMark, std::memory_order_relaxed); }
  // Nothing is known: somebody else has had the socket.
  void NoteAll() { bits_.store(~0u, std::memory_order_relaxed); }
  // What is accepted begins with what its listener has.
  void Inherit(const OptionsSet& listener) { bits_.fetch_or(listener.bits_.load()); }

  bool Has(unsigned bit) const { return (bits_.load(std::memory_order_relaxed) & bit) != 0; }

 private:
  static unsigned BitOf(int level, int name) {
    if (level == IPPROTO_TCP) {
      const auto* const kept = std::find(kKeptOptions.begin(), kKeptOptions.end(), name);
      return kept == kKeptOptions.end() ? 0
                                        : Kept(static_cast<size_t>(kept - kKeptOptions.begin()));
    }
    if (level != SOL_SOCKET) return 0;
    if (name == SO_RCVTIMEO || name == SO_RCVTIMEO_NEW) return kReceiveTime;
    if (name == SO_SNDTIMEO || name == SO_SNDTIMEO_NEW) return kSendTime;
    if (name == SO_OOBINLINE) return kUrgentInLine;
    if (name == SO_LINGER) return kLinger;
    return name == SO_RCVLOWAT ? kLowMark : 0;
  }

  std::atomic<unsigned> bits_{0};
};

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_SHIM_OPTIONS_SET_H_
