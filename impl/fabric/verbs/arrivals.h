#ifndef ESDP_IMPL_FABRIC_VERBS_ARRIVALS_H_
#define ESDP_IMPL_FABRIC_VERBS_ARRIVALS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "impl/fabric/ready_descriptor.h"

namespace esdp::fabric::verbs {

// The fabric's descriptor: readable while one of its sources is, or while something waits to be
// polled.
//
//   Owns:     the descriptor, and the one that says that something waits; not those of the sources.
//   Threads:  not thread-safe; fd() may be waited on by any.
//   Blocks:   never.
//   Units:    –
//   Errors:   Open fails where the system has no descriptor.
class Arrivals {
 public:
  enum Source : uint32_t { kCompletions, kManager, kDevice, kDeviceEvents, kSources };

  Arrivals() = default;
  ~Arrivals();
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;

  // `sources` in the order of Source.
  absl::Status Open(const std::array<int, kSources>& sources);
  int fd() const { return all_fd_; }

  // Which sources are readable now.
  class Ready {
   public:
    bool Has(Source source) const { return (mask_ & 1u << source) != 0; }

   private:
    friend class Arrivals;
    uint32_t mask_ = 0;
  };
  Ready Look() const;

  // Whether something waits to be polled.
  void Signal(bool waits) { signal_.Set(waits); }

 private:
  int all_fd_ = -1;  // an epoll descriptor over the sources' and ours
  ReadyDescriptor signal_;
};

}  // namespace esdp::fabric::verbs

#endif  // ESDP_IMPL_FABRIC_VERBS_ARRIVALS_H_
