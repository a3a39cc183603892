#ifndef ESDP_IMPL_SWITCH_ENTRY_H_
#define ESDP_IMPL_SWITCH_ENTRY_H_

#include <atomic>

#include "impl/switch/taker.h"

// What entry points are made of. They have the names of libc for the linker alone: the headers, with
// _FORTIFY_SOURCE, have bodies of their own for some of these.
#define ESDP_ENTRY(result, function, name, arguments)                                   \
  result function arguments __asm__(name) __attribute__((used, visibility("default"))); \
  result function arguments

// The same of a call whose way to libc has to be short: where `plain` holds it is that call alone,
// and the body is for the rest. The first call finds libc's.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define ESDP_SHORT_ENTRY(result, function, call, arguments, names, plain)            \
  [[gnu::noinline, gnu::cold]] static result function##Asked arguments;              \
  [[gnu::noinline, gnu::cold]] static result function##First arguments;              \
  static constinit std::atomic<result(*) arguments> function##Next{function##First}; \
  result function##First arguments {                                                 \
    function##Next.store(real.call.get(), std::memory_order_relaxed);                \
    return function##Next.load(std::memory_order_relaxed) names;                     \
  }                                                                                  \
  ESDP_ENTRY(result, function, #call, arguments) {                                   \
    if (plain) [[likely]]                                                            \
      return function##Next.load(std::memory_order_relaxed) names;                   \
    return function##Asked names;                                                    \
  }                                                                                  \
  result function##Asked arguments
// NOLINTEND(bugprone-macro-parentheses)

namespace esdp::libc {

// Apart, so that a number that is not taken costs the question alone.
template <typename Own, typename Next>
[[gnu::noinline, gnu::cold]] auto RouteTaken(Own own, Next next) -> decltype(next()) {
  if (!ToLibc::holds()) {
    if (Taker* const who = taker.load(std::memory_order_acquire); who != nullptr) {
      if (const auto answer = own(*who); answer.has_value()) return *answer;
    }
  }
  return next();
}

// `own(taker)` answers for a number that is taken; `next()` is libc.
template <typename Own, typename Next>
auto Route(int fd, const Own& own, const Next& next) -> decltype(next()) {
  if (taken_numbers.Has(fd)) [[unlikely]]
    return RouteTaken(own, next);
  return next();
}

}  // namespace esdp::libc

#endif  // ESDP_IMPL_SWITCH_ENTRY_H_
