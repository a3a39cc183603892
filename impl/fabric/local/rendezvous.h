#ifndef ESDP_IMPL_FABRIC_LOCAL_RENDEZVOUS_H_
#define ESDP_IMPL_FABRIC_LOCAL_RENDEZVOUS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "impl/base/bytes.h"
#include "impl/base/handle_table.h"
#include "impl/base/time.h"
#include "impl/base/timer_queue.h"
#include "impl/fabric/half_open.h"
#include "impl/fabric/local/fabric_shared.h"
#include "impl/fabric/local/handshake.h"
#include "impl/fabric/local/local_socket.h"
#include "impl/fabric/local/queue_pair.h"
#include "impl/fabric/soft/queue_pairs.h"
#include "impl/fabric/types.h"

namespace esdp::fabric::local {

using QueuePairs = soft::QueuePairs<QueuePair>;

// Listens, connects, accepts and rejects: a unix socket by abstract name, then one message each
// way, with the block of its sender.
//
//   Owns:     listeners, and sockets until a queue pair takes them over.
//   Threads:  not thread-safe.
//   Blocks:   never.
//   Units:    –
//   Errors:   what a stranger sends costs the stranger's own connection and nothing else.
class Rendezvous {
 public:
  // Connections that have said nothing yet; more wait in the system's queue.
  static constexpr size_t kSilentRequestsMax = 256;

  Rendezvous(FabricShared& shared, QueuePairs& queue_pairs)
      : shared_(shared), queue_pairs_(queue_pairs) {}

  absl::StatusOr<ListenerId> Listen(const Address& address, int backlog);
  absl::StatusOr<Address> ListenerAddress(ListenerId id) const;
  absl::Status StopListening(ListenerId id);

  absl::Status Connect(QueuePairId id, const Address& local, const Address& peer,
                       ConstBytes private_data, Time deadline);
  absl::Status Accept(RequestId id, QueuePairId queue_pair, ConstBytes private_data);
  absl::Status Reject(RequestId id, ConstBytes private_data);
  // Gives up the queue pair's attempt, if there is one. Nothing more is heard of it.
  void GiveUp(QueuePairId id);

  // From the poller.
  bool OnListenerReady(uint64_t owner);
  void OnRequestReady(uint64_t owner);
  void OnInitiatorReady(uint64_t owner);
  void OnListenerDeadline(uint64_t owner);
  void OnRequestDeadline(uint64_t owner) { Drop(owner); }
  void OnNoMemory(uint64_t initiator) { Fail(initiator, Cause::kDevice, "no memory", {}); }

  // Of connects: until they are given up or tried again.
  Time NextDeadline() const { return attempts_.NextDeadline(); }
  void RunDeadlines(Time now);

 private:
  struct Listener {
    Descriptor socket;
    Address address;
    soft::WatchId watch = soft::WatchId::kNone;
    bool starved = false;  // the last attempt to take a connection has failed
  };

  // An incoming connection, up to its answer.
  struct Request {
    ListenerId listener = ListenerId::kNone;
    Descriptor socket;
    soft::WatchId watch = soft::WatchId::kNone;
    uint64_t silent = kNoHandle;  // among the silent ones
    bool presented = false;       // its event is out; it is not watched any more
    Hello hello{};
    Descriptor block{};
  };

  // An outgoing connection, up to the peer's answer.
  struct Initiator {
    QueuePairId queue_pair = QueuePairId::kNone;
    Descriptor socket;  // not open: to be tried again
    soft::WatchId watch = soft::WatchId::kNone;
    Time deadline{};
    Address peer;
    Hello hello{};
    WritableMemory block{};
  };

  // Reads the nonce that the other side has named, and says so in our block.
  void Prove(const Hello& hello, PeerProcess& process, Channel& channel);
  uint64_t NonceAddress() const;
  absl::StatusOr<Descriptor> ListenSomewhere(Address& address, int backlog);
  uint16_t NextPort();
  bool AddRequest(ListenerId listener, Descriptor socket);
  void OnAcceptFailed(Listener& listener, ListenerId id, int error);
  void Rest(Listener& listener);
  bool DropOneThatIsSilent();
  bool IsAcceptable(const Listener& listener, const Request& request) const;
  void Present(uint64_t owner, Request& request);
  uint64_t FindPresented(ListenerId listener);
  Agreement AgreementOf(const Request& request, const QueuePairOptions& options) const;
  static void SayNo(const Request& request, ConstBytes private_data);
  void Drop(uint64_t owner);

  void Try(uint64_t owner);
  void OnAnswer(uint64_t owner, const Hello& answer, const Descriptor& block);
  void Fail(uint64_t owner, Cause cause, std::string detail, ConstBytes private_data);

  FabricShared& shared_;
  QueuePairs& queue_pairs_;
  HandleTable<Listener> listeners_;
  HandleTable<Request> requests_;
  HandleTable<Initiator> initiators_;
  TimerQueue attempts_;
  HalfOpen silent_requests_;
  uint16_t next_port_ = 0;
};

}  // namespace esdp::fabric::local

#endif  // ESDP_IMPL_FABRIC_LOCAL_RENDEZVOUS_H_
