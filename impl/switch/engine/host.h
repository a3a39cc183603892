#ifndef ESDP_IMPL_SWITCH_ENGINE_HOST_H_
#define ESDP_IMPL_SWITCH_ENGINE_HOST_H_

#include <utility>

#include "impl/switch/engine_interface.h"

namespace esdp::switching {

// Who has loaded the engine.
extern HostCalls host;

// What the engine's own calls go to, before it has a thread: where a process forks while one looks
// for them, the child would wait for that thread, which it does not have.
void FindRealCalls();

// A descriptor that closes itself.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    Reset(std::exchange(other.number_, -1));
    return *this;
  }
  ~Descriptor() { Reset(); }

  int get() const { return number_; }
  bool valid() const { return number_ >= 0; }
  int Release() { return std::exchange(number_, -1); }
  void Reset(int number = -1);

 private:
  int number_ = -1;
};

// A line for the log, made as by printf.
[[gnu::format(printf, 2, 3)]] void Tell(int level, const char* format, ...);

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_ENGINE_HOST_H_
