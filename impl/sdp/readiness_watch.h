#ifndef ESDP_IMPL_SDP_READINESS_WATCH_H_
#define ESDP_IMPL_SDP_READINESS_WATCH_H_

#include <optional>

#include "impl/base/digest.h"
#include "impl/sdp/interface/action.h"
#include "impl/sdp/interface/readiness.h"

namespace esdp::sdp {

// Tells each change of what the application could do, once somebody has asked for it. Nobody has:
// it costs nothing, where each message that waits for its receive would be told of twice.
class ReadinessWatch {
 public:
  explicit ReadinessWatch(bool on) : on_(on) {}
  void Start() { on_ = true; }
  bool on() const { return on_; }
  void Tell(const Readiness& now, Actions& actions) {
    if (told_ == now) return;
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
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_READINESS_WATCH_H_
