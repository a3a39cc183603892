#include "impl/base/check.h"

#include <atomic>

namespace esdp {
namespace {

// Constant-initialised, so that a check may fail before main().
constinit std::atomic<CheckHook> g_hook{nullptr};

}  // namespace

CheckHook SetCheckHook(CheckHook hook) { return g_hook.exchange(hook); }

bool ReportCheckFailure(const char* expression, const char* file, int line) {
  if (CheckHook hook = g_hook.load(); hook != nullptr) hook(CheckFailure{expression, file, line});
  return false;
}

}  // namespace esdp
