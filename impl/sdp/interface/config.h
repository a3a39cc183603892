#ifndef ESDP_IMPL_SDP_INTERFACE_CONFIG_H_
#define ESDP_IMPL_SDP_INTERFACE_CONFIG_H_

#include <chrono>
#include <cstdint>

#include "impl/base/time.h"
#include "impl/sdp/interface/ids.h"
#include "impl/sdp/wire/messages.h"

namespace esdp::sdp {

// Whether the peer may move the connection to another queue pair, for which we have to connect to a
// port that it names [12].
enum class PeerMoves : uint8_t {
  kRefused,
  kGuarded,    // with the connection's return token, where both sides know it
  kUnguarded,  // from and to a peer that knows none, too
};

// What a connection is told at construction and, but for the modes, never again: what its fabric
// can do, how large its buffers are, and the application's wishes. Sizes in bytes.
struct Config {
  bool connecting = true;  // false: the accepting side

  // The fabric (its port's Limits). Reads in flight are negotiated and come with Established.
  uint32_t read_bytes_max = 1u << 30;  // longest RDMA read or write of one work request
  // Once so many bytes are being read, in two reads or more, no further read starts: where the
  // answer to one waits for all reads posted before it, the peer is to hear of each in time.
  uint64_t read_ahead_bytes = ~uint64_t{0};
  uint32_t gather_max = 5;      // payload entries of one Send, beside its header
  uint32_t send_work_max = 64;  // Sends, reads and writes posted and not finished
  bool initiator_speaks_first = false;
  bool can_expose = true;          // Expose may be answered by Exposed at all
  bool shows_receives = true;      // the peer may write to them [8]
  bool remote_invalidate = false;  // our Cap bit 0x1: any key of ours may be invalidated by a Send

  // Private buffers, our own side. Receive buffers include the header.
  uint16_t receive_buffers = 16;  // at first
  // So many at most, as far as these bytes go, where the path is long. Not above: never more.
  uint16_t receive_buffers_max = 0;
  uint64_t receive_window_bytes = 0;
  // A buffer that is free again is posted, and so announced, together with others: that costs less.
  // The peer never lacks more than these for it.
  uint16_t receives_at_once = 1;
  uint32_t receive_buffer_bytes = 16 * 1024 + 16;
  uint32_t receive_buffer_bytes_max = 0;   // the peer may ask for so much; 0: for no change
  uint32_t peer_receive_buffer_bytes = 0;  // to ask of the peer, where it can; 0: as they are
  // Only for larger ones, and only where much is sent that does not fit one of those there are.
  bool peer_receive_buffers_by_need = false;
  uint16_t send_buffers =
      8;  // each holds 16 KiB of coalesced payload, never more than the peer's buffer takes

  uint8_t max_adverts = 16;  // adverts the peer may have outstanding towards us
  // Behave as the deployed peers do: declare one advert and no capability, stay in Combined.
  bool as_deployed = false;
  bool watch_readiness = false;  // as if WatchReadiness came first
  ModeWish mode_send = ModeWish::kAutomatic;
  ModeWish mode_receive = ModeWish::kAutomatic;

  // Path policy. 0: always zero-copy; kNever: never.
  static constexpr uint64_t kNever = ~uint64_t{0};
  uint64_t zcopy_send_min = 64 * 1024;
  uint64_t zcopy_receive_min = 64 * 1024;
  uint32_t coalesce_max =
      2048;  // a send piece up to this long is copied and may share a message with its neighbours

  // A whole send that is copied, with nothing before it, leaves without the queue if it has at most
  // so many bytes. The actions are the same: below this the tests compare both routes.
  uint32_t immediate_max = ~uint32_t{0};

  Duration acknowledge_delay =
      std::chrono::milliseconds(10);  // kDelivered of the peer waits at most this
  Duration close_wait =
      std::chrono::seconds(5);  // second closer: how long for the peer to end the connection
  Duration linger =
      std::chrono::seconds(60);  // graceful close: how long for our data and the peer's DisConn

  // How long what is taken back, by a cancel that must not abort, may stay with the peer before the
  // connection is aborted.
  Duration cancel_grace = std::chrono::seconds(5);

  Duration suspend_wait =
      std::chrono::seconds(30);  // suspended: how long at most until it is resumed

  PeerMoves peer_moves = PeerMoves::kUnguarded;
  wire::ReturnToken return_token{};  // of the accepting side; all zero: it gives none
  uint32_t moves_max =
      ~uint32_t{0};  // by the peer, one after the other; each second allows one more

  // For our Hello.
  uint8_t ip_version = 4;
  uint16_t local_port = 0;
  uint16_t peer_port = 0;  // not in the Hello: of a peer that connects anew [12]
  wire::AddressBytes local_address{};
  wire::AddressBytes peer_address{};
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_INTERFACE_CONFIG_H_
