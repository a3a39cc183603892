#ifndef ESDP_IMPL_PROVIDER_SESSION_SET_UP_ACTIONS_H_
#define ESDP_IMPL_PROVIDER_SESSION_SET_UP_ACTIONS_H_

#include "impl/provider/session/session.h"
#include "impl/sdp/interface/action.h"

namespace esdp::provider {

// The actions of a core that get it a queue pair with a peer, for the driver to hand on.
//
//   Owns:     nothing.
//   Threads:  the holder of the shard lock.
//   Blocks:   never.
//   Units:    –
//   Errors:   what the fabric refuses is noted in the session, and answered by ConnectFailed.
class SetUpActions {
 public:
  virtual void Start(Session& session, const sdp::StartConnect& action) = 0;
  virtual void Accept(Session& session, const sdp::AcceptConnection& action) = 0;
  virtual void Reject(Session& session, const sdp::RejectConnection& action) = 0;
  virtual void Replace(Session& session) = 0;
  virtual void AwaitHello(Session& session) = 0;
  virtual void SayFarewell(Session& session, const sdp::Farewell& action) = 0;

  // The connection ends without an answer to the request that it came with.
  virtual void RejectRequest(Session& session) = 0;
  // Nobody is to come back to it any more.
  virtual void StopReturn(Session& session) = 0;

 protected:
  ~SetUpActions() = default;
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_SESSION_SET_UP_ACTIONS_H_
