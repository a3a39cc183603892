#ifndef ESDP_IMPL_PROVIDER_SETUP_ESTABLISHMENT_H_
#define ESDP_IMPL_PROVIDER_SETUP_ESTABLISHMENT_H_

#include <chrono>

#include "absl/status/status.h"
#include "impl/base/bytes.h"
#include "impl/base/time.h"
#include "impl/fabric/port.h"
#include "impl/provider/regions.h"
#include "impl/provider/session/connections.h"
#include "impl/provider/session/driver.h"
#include "impl/provider/session/set_up_actions.h"
#include "impl/provider/types.h"
#include "impl/sdp/wire/messages.h"

namespace esdp::provider {

// What each action of a core's set-up is on the port: how its queue pair connects, is accepted, and
// gives way to another one.
//
//   Owns:     nothing.
//   Threads:  the holder of the shard lock. The driver calls it within a step, and gets its answers
//             back.
//   Blocks:   never.
//   Units:    instants on the fabric's clock.
//   Errors:   what the fabric refuses is noted in the session, and answered by ConnectFailed.
class Establishment final : public SetUpActions {
 public:
  Establishment(const Fabrics& fabrics, Driver& driver, Connections& connections)
      : fabrics_(fabrics), driver_(driver), connections_(connections) {}

  void Start(Session& session, const sdp::StartConnect& action) override;
  void Accept(Session& session, const sdp::AcceptConnection& action) override;
  void Reject(Session& session, const sdp::RejectConnection& action) override;
  void Replace(Session& session) override;
  void AwaitHello(Session& session) override;
  void SayFarewell(Session& session, const sdp::Farewell& action) override;
  void RejectRequest(Session& session) override;
  void StopReturn(Session& session) override;

 private:
  static constexpr Duration kFarewellWait = std::chrono::seconds(5);

  static absl::Status Connect(const Session& session, const Address& local, const Address& peer,
                              ConstBytes hello);
  static absl::Status NameLocalPort(const Session& session, Address& local,
                                    sdp::wire::Message& hello);

  static uint8_t NextToTry(const Session& session);
  void ReplaceByNext(Session& session);

  const Fabrics& fabrics_;
  Driver& driver_;
  Connections& connections_;
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_SETUP_ESTABLISHMENT_H_
