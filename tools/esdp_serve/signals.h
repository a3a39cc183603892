#ifndef ESDP_TOOLS_ESDP_SERVE_SIGNALS_H_
#define ESDP_TOOLS_ESDP_SERVE_SIGNALS_H_

#include <functional>
#include <thread>

#include "tools/esdp_files/descriptor.h"

namespace esdp_serve {

// SIGTERM and SIGINT as calls on a thread of its own. To be made before any other thread is.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  // Each of them calls this from now on.
  void Start(std::function<void()> call);

 private:
  esdp_files::Descriptor signals_;
  esdp_files::Descriptor ends_;
  std::thread thread_;
};

}  // namespace esdp_serve

#endif  // ESDP_TOOLS_ESDP_SERVE_SIGNALS_H_
