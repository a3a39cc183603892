#ifndef ESDP_IMPL_EXS_READINESS_H_
#define ESDP_IMPL_EXS_READINESS_H_

#include <atomic>
#include <cstdint>
#include <mutex>

#include "esdp/event.h"
#include "impl/exs/place.h"

namespace esdp::exs {

class ExsSocket;

// What the number of a socket shows to poll, select and epoll. Until somebody has asked, nothing is
// kept up to date, and costs nothing.
//
//   Owns:     what is asked below.
//   Threads:  any.
//   Blocks:   never.
//   Units:    -
//   Errors:   -
class Readiness {
 public:
  Readiness(ExsSocket& socket, Place& place) : socket_(socket), place_(place) {}
  ~Readiness();
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;

  // From now on.
  void Show();
  // A call or an event may have changed something. `arrived`: who waits for an edge is to have one
  // where it is readable still.
  void Refresh(bool arrived);

 private:
  void Update(uint32_t bits, bool arrived);
  void ShowRoom(bool room);
  void Ask(uint32_t mask);
  void OnAsked();
  void End(bool failed);

  ExsSocket& socket_;
  Place& place_;
  std::atomic<bool> shows_{false};
  std::mutex mutex_;
  OpId asked_ = OpId::kNone;  // below
  uint32_t asked_for_ = 0;
  bool full_ = false;
};

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_READINESS_H_
