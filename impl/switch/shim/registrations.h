#ifndef ESDP_IMPL_SWITCH_SHIM_REGISTRATIONS_H_
#define ESDP_IMPL_SWITCH_SHIM_REGISTRATIONS_H_

#include <sys/epoll.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace esdp::switching {

// That a number is watched by an epoll set.
struct Registration {
  int set = -1;
  int number = -1;
  uint32_t events = 0;
  uint64_t data = 0;
};

// Registrations knows what epoll sets were told of the numbers of one connection.
//
//   Owns:     nothing.
//   Threads:  any, each while it has a Hold: a set is told and that is noted, with no other between.
//   Blocks:   a Hold that waits, for a millisecond at most.
//   Units:    -
//   Errors:   none; what there is no room for is lost, which it tells.
class Registrations {
 public:
  // Who has one may be interrupted by a handler of its own thread that wants one, too, and may never
  // come back from that. So who waits takes it over in the end.
  class Hold {
   public:
    enum class Waits : bool { kNo, kYes };
    Hold(Registrations& registrations, Waits waits);
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    bool has() const { return has_; }

   private:
    Registrations& registrations_;
    const bool has_;
  };

  // The set was told.
  void Note(int set, int operation, int number, const epoll_event* event);
  // The number is no longer one of the connection.
  void Forget(int number);
  bool lost_one() const { return lost_one_; }
  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }
  static constexpr size_t size() { return std::tuple_size_v<decltype(all_)>; }
  Registration& operator[](size_t place) { return all_[place]; }

 private:
  std::atomic<bool> held_{false};
  bool lost_one_ = false;  // there were more than there is room for
  std::array<Registration, 4> all_{};
};

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_SHIM_REGISTRATIONS_H_
