#ifndef ESDP_TOOLS_ESDP_DIAG_ATTEMPT_H_
#define ESDP_TOOLS_ESDP_DIAG_ATTEMPT_H_

#include <string>

#include "esdp/context.h"

namespace esdp_diag {

// What became of one connection to a server.
struct Attempt {
  bool connected = false;
  std::string text;
  std::string trouble;  // the name of the section that fits, empty for none
};

// Connects and closes again; gives up after some seconds.
Attempt TryToConnect(const std::string& fabric, const esdp::Address& address);

}  // namespace esdp_diag

#endif  // ESDP_TOOLS_ESDP_DIAG_ATTEMPT_H_
