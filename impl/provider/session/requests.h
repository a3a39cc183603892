#ifndef ESDP_IMPL_PROVIDER_SESSION_REQUESTS_H_
#define ESDP_IMPL_PROVIDER_SESSION_REQUESTS_H_

#include <string>

#include "impl/provider/observer.h"
#include "impl/provider/session/connections.h"
#include "impl/provider/session/driver.h"
#include "impl/provider/session/set_up_actions.h"
#include "impl/provider/setup/rendezvous.h"

namespace esdp::provider {

// Turns the front end's requests into inputs of the cores.
//
//   Owns:     nothing.
//   Threads:  the holder of the shard lock.
//   Blocks:   never; allocates nothing in a steady state.
//   Errors:   a transfer that cannot be begun is finished at once, with the root cause; other
//             requests for connections that are not there have come too late and are forgotten.
class Requests {
 public:
  Requests(Driver& driver, Connections& connections, Rendezvous& rendezvous, SetUpActions& set_up,
           Observer& observer)
      : driver_(driver),
        connections_(connections),
        rendezvous_(rendezvous),
        set_up_(set_up),
        observer_(observer) {}

  void Execute(const Request& request);
  bool TrySendImmediate(ConnectionId connection, ImmediateSend& send);
  // The deadline of this operation has passed.
  void Expire(sdp::OperationId operation);
  void Close(Session& session, bool abort);
  void Ring(uint64_t alarm) { observer_.OnAlarm(alarm); }

 private:
  void Carry(const Request& request);
  void Begin(const Request& request, Session* session);
  void AskPieces(Session& session, Transfer& transfer, sdp::OperationId operation);
  void AskPiece(Session& session, const Transfer& transfer, const MemoryRegion& region,
                const sdp::OperationRange& piece, bool more);
  void Cancel(const Request& request, Session& session);
  void Shutdown(Session& session);
  void Suspend(Session& session, const Request& request);
  void CancelSuspend(Session& session, const Request& request);
  void Refuse(ConnectionId connection, Transfer& transfer, const Failure& failure);

  Driver& driver_;
  Connections& connections_;
  Rendezvous& rendezvous_;
  SetUpActions& set_up_;
  Observer& observer_;
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_SESSION_REQUESTS_H_
