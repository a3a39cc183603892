#ifndef ESDP_IMPL_SDP_READINESS_WATCH_H_
#define ESDP_IMPL_SDP_READINESS_WATCH_H_

#include <cstddef>
#include <optional>

#include "impl/base/digest.h"
#include "impl/sdp/interface/action.h"
#include "impl/sdp/interface/readiness.h"

namespace esdp::sdp {

// Tells each change of what the application could do, and of what comes on top of bytes that wait,
// once somebody has asked for it. Nobody has:
// it costs nothing, where each message that waits for its receive would be told of twice.
class ReadinessWatch {
 public:
  explicit ReadinessWatch(bool on) : on_(on) {}
  void Start() { on_ = true; }
  bool on() const { return on_; }
  // `waiting`: messages and adverts of which there are bytes to be read.
  void Tell(const Readiness& now, size_t waiting, Actions& actions) {
    const bool more = now.readable && waiting > waiting_;
    waiting_ = waiting;
    if (told_ == now && !more) return;
    told_ = now;
    Append<ReportReadiness>(actions).readiness = now;
  }
  void AddTo(Digest& digest) const {
    digest.Add(on_).Add(told_.has_value());
    if (!told_) return;
    digest.Add(told_->readable).Add(told_->writable).Add(told_->urgent).Add(told_->ended);
  }

 private:
  bool on_;
  std::optional<Readiness> told_;
  size_t waiting_ = 0;  // behind the last step: no state of its own
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_READINESS_WATCH_H_
