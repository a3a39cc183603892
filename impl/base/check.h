#ifndef ESDP_IMPL_BASE_CHECK_H_
#define ESDP_IMPL_BASE_CHECK_H_

// Checks that stay on in release builds. A library must not end its host process, so a failed check
// is remembered and the caller returns; in our own tests and in the simulator the hook stops the
// run instead.

namespace esdp {

struct CheckFailure {
  const char* expression;
  const char* file;
  int line;
};

using CheckHook = void (*)(const CheckFailure&);

// Called on each failed check, on the thread that failed it; must not block. Returns the hook that
// was there before. The default remembers nothing and does nothing: the caller of ESDP_CHECK acts
// on `false`.
CheckHook SetCheckHook(CheckHook hook);

// Reports a failure to the hook and returns false.
[[gnu::cold]] bool ReportCheckFailure(const char* expression, const char* file, int line);

}  // namespace esdp

// True when the condition holds. Use as: if (!ESDP_CHECK(x)) return ...;
#define ESDP_CHECK(condition)                           \
  (__builtin_expect(static_cast<bool>(condition), 1) || \
   ::esdp::ReportCheckFailure(#condition, __FILE__, __LINE__))

#endif  // ESDP_IMPL_BASE_CHECK_H_
