#include "impl/switch/shim/engine_link.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include "impl/switch/shim/program_rules.h"

namespace esdp::switching {
namespace {

constexpr std::string_view kName = "/libesdp-switch-engine.so";
constexpr size_t kMaxPath = 1024;

bool Fail(const char* reason) {
  std::array<char, 384> text;
  (void)std::snprintf(text.data(), text.size(), "no engine, so all is TCP: %s", reason);
  Log(9, text.data());
  return false;
}

}  // namespace

constinit EngineCalls engine;

bool LoadEngine(const HostCalls& host) {
  Dl_info about = {};
  std::array<char, kMaxPath> path{};
  if (dladdr(&engine, &about) == 0 || about.dli_fname == nullptr) return Fail("no name");
  const std::string_view own = about.dli_fname;
  const size_t slash = own.rfind('/');
  if (slash == std::string_view::npos || slash + kName.size() >= path.size())
    return Fail("no folder");
  std::copy(kName.begin(), kName.end(), std::copy_n(own.data(), slash, path.data()));
  void* const library = dlopen(path.data(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Fail(dlerror());
  const auto entry = reinterpret_cast<EngineEntry>(dlsym(library, kEngineEntry));
  return (entry != nullptr && entry(host, engine)) || Fail("it is of another version");
}

}  // namespace esdp::switching
