#include "impl/switch/libc_calls.h"

#include <dlfcn.h>

namespace esdp::libc {

constinit RealCalls real;

void* FindNext(const char* name) { return dlsym(RTLD_NEXT, name); }

namespace {

// As the library is loaded, so that no handler of a signal has to. What is called before resolves
// for itself.
[[gnu::constructor]] void ResolveAll() {
#define ESDP_LIBC_RESOLVE(name) (void)real.name.Resolve();
  ESDP_LIBC_CALLS(ESDP_LIBC_RESOLVE)
  ESDP_LIBC_CHECKED_CALLS(ESDP_LIBC_RESOLVE)
#undef ESDP_LIBC_RESOLVE
}

}  // namespace
}  // namespace esdp::libc
