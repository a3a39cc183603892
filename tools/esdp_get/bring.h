#ifndef ESDP_TOOLS_ESDP_GET_BRING_H_
#define ESDP_TOOLS_ESDP_GET_BRING_H_

#include "tools/esdp_get/connection.h"
#include "tools/esdp_get/options.h"

namespace esdp_get {

// What was asked for with "put", and how it ends.
int Bring(Connection& connection, const Options& options);

}  // namespace esdp_get

#endif  // ESDP_TOOLS_ESDP_GET_BRING_H_
