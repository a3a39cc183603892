#ifndef ESDP_TESTS_FABRIC_LOCAL_REMOTE_FABRIC_H_
#define ESDP_TESTS_FABRIC_LOCAL_REMOTE_FABRIC_H_

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <memory>

#include "impl/fabric/port.h"

namespace esdp::fabric {

// Memory that a child of this process has at the same addresses, if it is forked later. Given back
// at once by nobody: it lasts for the program.
std::shared_ptr<std::byte> AllocateForBoth(size_t bytes);

enum class Farewell { kOrderly, kKilled };

// A fabric in a child process, made there by `make`: each call goes to it and waits for its answer.
// The memory that is registered comes from AllocateForBoth. At its end the fabric there ends, and
// the process with it, or the process is killed.
std::unique_ptr<Fabric> MakeRemoteFabric(const std::function<std::unique_ptr<Fabric>()>& make,
                                         Farewell farewell);

}  // namespace esdp::fabric

#endif  // ESDP_TESTS_FABRIC_LOCAL_REMOTE_FABRIC_H_
