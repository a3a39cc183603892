#ifndef ESDP_IMPL_FABRIC_QPIP_RENDEZVOUS_H_
#define ESDP_IMPL_FABRIC_QPIP_RENDEZVOUS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "impl/base/bytes.h"
#include "impl/base/handle_table.h"
#include "impl/base/time.h"
#include "impl/fabric/half_open.h"
#include "impl/fabric/qpip/commons.h"
#include "impl/fabric/qpip/queue_pair.h"
#include "impl/fabric/qpip/startup.h"
#include "impl/fabric/qpip/tcp_stream.h"
#include "impl/fabric/soft/queue_pairs.h"
#include "impl/fabric/types.h"

namespace esdp::fabric::qpip {

using QueuePairs = soft::QueuePairs<QueuePair>;

// Listens, connects, accepts and rejects: TCP, then one MPA frame each way (RFC 5044 section 7.1).
//
//   Owns:     listeners, and streams until a queue pair takes them over.
//   Threads:  not thread-safe.
//   Blocks:   never.
//   Units:    –
//   Errors:   what a stranger sends costs the stranger's own connection and nothing else.
class Rendezvous {
 public:
  // Connections whose MPA Request has not fully arrived, of a listener with a smaller backlog; with
  // a larger one as many as that. More wait in the system's queue. Where there is no room, HalfOpen
  // tells who makes some.
  static constexpr size_t kSilentRequestsMax = 256;

  Rendezvous(FabricShared& commons, QueuePairs& queue_pairs)
      : commons_(commons), queue_pairs_(queue_pairs) {}

  absl::StatusOr<ListenerId> Listen(const Address& address, int backlog);
  absl::StatusOr<Address> ListenerAddress(ListenerId id) const;
  absl::StatusOr<ListenerId> ListenOver(int descriptor);
  absl::Status StopListening(ListenerId id);

  absl::Status Connect(QueuePairId id, const Address& local, const Address& peer,
                       ConstBytes private_data, Time deadline);
  absl::Status ConnectOver(QueuePairId id, int descriptor, ConstBytes private_data, Time deadline);
  absl::Status Accept(RequestId id, QueuePairId queue_pair, ConstBytes private_data);
  absl::Status Reject(RequestId id, ConstBytes private_data);
  // Gives up the queue pair's attempt, if there is one. Nothing more is heard of it.
  void GiveUp(QueuePairId id);

  // From the poller. True when anything moved.
  bool OnListenerReady(uint64_t owner);
  bool OnRequestReady(uint64_t owner);
  bool OnInitiatorReady(uint64_t owner);
  void OnListenerDeadline(uint64_t owner);
  void OnRequestDeadline(uint64_t owner);
  void OnInitiatorDeadline(uint64_t owner);
  void OnInitiatorWithoutMemory(uint64_t owner);

 private:
  struct Listener {
    TcpStream socket;  // not open where it listens over a connection
    Address over;      // the local end of that
    WatchId watch = WatchId::kNone;
    size_t silent_max = kSilentRequestsMax;
    bool starved = false;  // the last attempt to take a connection has failed
  };

  // An incoming connection, up to its answer.
  struct Request {
    ListenerId listener = ListenerId::kNone;
    TcpStream stream;
    WatchId watch = WatchId::kNone;
    uint64_t silent = kNoHandle;  // among the silent ones
    bool presented = false;       // its event is out; it is not watched any more
    StartupReader reader{MpaKind::kRequest};
  };

  // An outgoing connection, up to the peer's answer.
  struct Initiator {
    QueuePairId queue_pair = QueuePairId::kNone;
    TcpStream stream;
    WatchId watch = WatchId::kNone;
    bool request_sent = false;
    std::vector<std::byte> private_data;
    StartupReader reader{MpaKind::kReply};
  };

  static absl::Status CheckPrivateData(ConstBytes private_data);
  Offer OfferOf(const QueuePairOptions& options) const;
  void OnAcceptFailed(Listener& listener, int error);
  void Rest(Listener& listener, Time until);
  void SayShort(ListenerId listener);
  // Drops one that was silent for long enough; false: there is none.
  bool DropOneThatIsSilent();
  void AddRequest(ListenerId listener, TcpStream stream);
  // One whose event is out and that has no answer, or whose request is not complete; kNoHandle for
  // none.
  uint64_t FindRequest(ListenerId listener, bool presented);
  void Present(uint64_t owner, Request& request);
  void RejectStream(Request& request, ConstBytes private_data);
  void Drop(uint64_t owner);
  // Drops one that has not come about: of ListenOver the owner is told.
  void TurnAway(uint64_t owner, Cause cause, std::string detail);
  // The attempt's handle.
  absl::StatusOr<uint64_t> Begin(QueuePairId id, TcpStream stream, ConstBytes private_data,
                                 Time deadline);
  bool SendRequest(uint64_t owner, Initiator& initiator);
  void OnReply(uint64_t owner, Initiator& initiator);
  void SendFarewell(Initiator& initiator, const ReplyVerdict& verdict);
  void Fail(uint64_t owner, Cause cause, std::string detail, ConstBytes private_data);

  FabricShared& commons_;
  QueuePairs& queue_pairs_;
  HandleTable<Listener> listeners_;
  HandleTable<Request> requests_;
  HandleTable<Initiator> initiators_;
  HalfOpen silent_requests_;  // whose MPA Request has not fully arrived
  uint64_t dropped_silent_ = 0;
  Time next_word_{};  // when the log may speak of them again
};

}  // namespace esdp::fabric::qpip

#endif  // ESDP_IMPL_FABRIC_QPIP_RENDEZVOUS_H_
