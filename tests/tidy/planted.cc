#include <time.h>

#include <chrono>
#include <cstdlib>
#include <thread>

// Everything that the purity check must catch, each by another door.

namespace esdp::tidy {

long Planted() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  std::thread([] {}).join();
  const char* text = std::getenv("HOME");
  return now.tv_sec + std::rand() + (text == nullptr ? 0 : 1) +
         static_cast<long>(std::chrono::steady_clock::now().time_since_epoch().count());
}

}  // namespace esdp::tidy
