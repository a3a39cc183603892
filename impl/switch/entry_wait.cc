#include <algorithm>
#include <array>
#include <span>

#include "impl/switch/entry.h"
#include "impl/switch/libc_calls.h"

// The calls that wait for readiness. The system does: what is taken is only told that it is asked
// for. epoll_wait needs nothing of the kind, since every number of its set was added.

namespace esdp::libc {
namespace {

// `act(taker)`, where the number is taken.
template <typename Act>
void Tell(int fd, const Act& act) {
  (void)Route(
      fd,
      [&](Taker& who) {
        act(who);
        return Taker::Answer(0);
      },
      [] { return 0; });
}

// What a taker has to know of a thread that waits by another call than epoll_wait, until that is over.
class Preparation {
 public:
  explicit Preparation(std::span<const pollfd> asked) {
    if (!taken_numbers.any() || asked.data() == nullptr) return;
    for (const pollfd& each : asked) Add(each.fd, (each.events & (POLLIN | POLLRDNORM)) != 0);
  }
  Preparation(int count, const fd_set* in, const fd_set* out, const fd_set* urgent) {
    if (!taken_numbers.any()) return;
    for (int fd = 0; fd < std::min(count, FD_SETSIZE); ++fd) {
      if (!taken_numbers.Has(fd)) continue;
      const auto has = [fd](const fd_set* set) { return set != nullptr && FD_ISSET(fd, set); };
      if (has(in) || has(out) || has(urgent)) Add(fd, has(in));
    }
  }
  ~Preparation() {
    for (const Taker::Wait wait : std::span(waits_.data(), count_)) {
      taker.load(std::memory_order_acquire)->HasWaited(wait);
    }
  }
  Preparation(const Preparation&) = delete;
  Preparation& operator=(const Preparation&) = delete;

 private:
  void Add(int fd, bool input) {
    Tell(fd, [&](Taker& who) {
      who.ShowReadiness(fd);
      who.Waits();
      if (!input || count_ == waits_.size()) return;
      waits_[count_] = who.WaitsForInput(fd);
      if (waits_[count_] != 0) ++count_;
    });
  }

  // Filled as far as count_: most calls have none, and of more than there is room for the rest is not noted.
  std::array<Taker::Wait, 64> waits_;
  size_t count_ = 0;
};

}  // namespace

ESDP_SHORT_ENTRY(int, Poll, poll, (pollfd * asked, nfds_t count, int timeout),
                 (asked, count, timeout), !taken_numbers.any()) {
  const Preparation until_it_ends({asked, count});
  return real.poll.get()(asked, count, timeout);
}

ESDP_ENTRY(int, CheckedPoll, "__poll_chk",
           (pollfd * asked, nfds_t count, int timeout, size_t room)) {
  const Preparation until_it_ends({asked, room / sizeof(*asked) >= count ? count : 0});
  return real.poll_chk.get()(asked, count, timeout, room);
}

ESDP_SHORT_ENTRY(int, Ppoll, ppoll,
                 (pollfd * asked, nfds_t count, const timespec* timeout, const sigset_t* mask),
                 (asked, count, timeout, mask), !taken_numbers.any()) {
  const Preparation until_it_ends({asked, count});
  return real.ppoll.get()(asked, count, timeout, mask);
}

ESDP_ENTRY(int, CheckedPpoll, "__ppoll_chk",
           (pollfd * asked, nfds_t count, const timespec* timeout, const sigset_t* mask,
            size_t room)) {
  const Preparation until_it_ends({asked, room / sizeof(*asked) >= count ? count : 0});
  return real.ppoll_chk.get()(asked, count, timeout, mask, room);
}

ESDP_SHORT_ENTRY(int, Select, select,
                 (int count, fd_set* in, fd_set* out, fd_set* urgent, timeval* timeout),
                 (count, in, out, urgent, timeout), !taken_numbers.any()) {
  const Preparation until_it_ends(count, in, out, urgent);
  return real.select.get()(count, in, out, urgent, timeout);
}

ESDP_ENTRY(int, Pselect, "pselect",
           (int count, fd_set* in, fd_set* out, fd_set* urgent, const timespec* timeout,
            const sigset_t* mask)) {
  const Preparation until_it_ends(count, in, out, urgent);
  return real.pselect.get()(count, in, out, urgent, timeout, mask);
}

ESDP_ENTRY(int, EpollCtl, "epoll_ctl", (int set, int operation, int fd, epoll_event* event)) {
  if (operation != EPOLL_CTL_DEL) Tell(fd, [fd](Taker& who) { who.ShowReadiness(fd); });
  return Route(
      fd, [&](Taker& who) { return who.EpollCtl(set, operation, fd, event); },
      [&] { return real.epoll_ctl.get()(set, operation, fd, event); });
}

}  // namespace esdp::libc
