#ifndef ESDP_IMPL_PROVIDER_SETUP_PLAN_H_
#define ESDP_IMPL_PROVIDER_SETUP_PLAN_H_

#include "impl/fabric/port.h"
#include "impl/provider/regions.h"
#include "impl/provider/transport/transport.h"
#include "impl/provider/types.h"
#include "impl/sdp/interface/config.h"

namespace esdp::provider {

// What a queue pair can be that may give way to one of any other fabric of the shard: no more than
// each of them can. `place` is that of the first one.
fabric::Limits LimitsOfAll(const Fabrics& fabrics, uint8_t place);

// What the core and the transport of a new connection are to be, by the application's wishes and the
// fabric's limits. `remote_invalidate`: our Hello may say that any key of ours may be invalidated.
struct Plan {
  sdp::Config core;
  Transport::Shape transport;
};
Plan MakePlan(const ConnectionOptions& options, const fabric::Limits& limits, bool connecting,
              const Address& local, const Address& peer, bool remote_invalidate);

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_SETUP_PLAN_H_
