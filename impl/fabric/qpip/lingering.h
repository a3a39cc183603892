#ifndef ESDP_IMPL_FABRIC_QPIP_LINGERING_H_
#define ESDP_IMPL_FABRIC_QPIP_LINGERING_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "impl/base/handle_table.h"
#include "impl/base/time.h"
#include "impl/fabric/qpip/tcp_stream.h"
#include "impl/fabric/soft/poller.h"

namespace esdp::fabric::qpip {

using soft::Poller;
using soft::Readiness;
using soft::Watched;
using soft::WatchId;

// Sockets whose queue pair or request is gone and whose last words are still to be heard: a
// Terminate, or an MPA rejection. A socket that is closed while unread bytes wait is reset by the
// system, and the reset would overtake the last words: so each is written, then ended, then drained
// until the peer closes or time is up.
//
//   Owns:     the sockets and the words. At most kSocketsMax: the oldest makes room.
//   Threads:  not thread-safe.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   none: last words are lost if the peer does not take them.
class Lingering {
 public:
  static constexpr size_t kSocketsMax = 128;

  explicit Lingering(Poller& poller) : poller_(poller) {}

  // The stream is watched by nobody else any more.
  void Add(TcpStream stream, std::vector<std::byte> last_words, Time deadline);
  void OnReady(uint64_t owner);
  void OnDeadline(uint64_t owner) { Erase(owner); }

 private:
  struct Socket {
    TcpStream stream;
    std::vector<std::byte> last_words;
    size_t written = 0;
    bool ended = false;
    WatchId watch = WatchId::kNone;
  };

  // False when the socket is done with.
  bool Write(Socket& socket);
  static bool Drain(Socket& socket);
  void Erase(uint64_t owner);

  Poller& poller_;
  HandleTable<Socket> sockets_;
  std::deque<uint64_t> order_;  // the oldest first
};

}  // namespace esdp::fabric::qpip

#endif  // ESDP_IMPL_FABRIC_QPIP_LINGERING_H_
