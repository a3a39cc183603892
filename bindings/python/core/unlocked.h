#ifndef ESDP_BINDINGS_PYTHON_CORE_UNLOCKED_H_
#define ESDP_BINDINGS_PYTHON_CORE_UNLOCKED_H_

#include <pybind11/pybind11.h>

#include <atomic>

namespace esdp::python {

// The interpreter lock, let go for the length of a wait.
//
//   Owns:     the right to come back.
//   Threads:  made with the interpreter lock held; no Python object may be touched meanwhile.
//   Blocks:   its end, until the lock is free again.
//   Units:    count() tells how many threads are away: the end of the interpreter waits for them,
//             for a thread that comes back later is ended in the middle of its frames.
//   Errors:   -
class Unlocked {
 public:
  Unlocked() = default;
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

  static int count() { return away_.load(); }

 private:
  class Counted {
   public:
    Counted() { away_.fetch_add(1); }
    ~Counted() { away_.fetch_sub(1); }
  };

  inline static std::atomic<int> away_{0};

  Counted counted_;  // first, so that it ends when the lock is held again
  pybind11::gil_scoped_release release_;
};

}  // namespace esdp::python

#endif  // ESDP_BINDINGS_PYTHON_CORE_UNLOCKED_H_
