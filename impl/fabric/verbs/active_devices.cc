#include <dirent.h>

#include "impl/fabric/verbs/device.h"
#include "impl/fabric/verbs/verbs_fabric.h"

namespace esdp::fabric::verbs {

bool HasAnyDevice() {
  DIR* const devices = opendir("/sys/class/infiniband");
  if (devices == nullptr) return false;
  const dirent* each = readdir(devices);
  while (each != nullptr && each->d_name[0] == '.') each = readdir(devices);
  closedir(devices);
  return each != nullptr;
}

std::vector<std::string> ActiveDevices(const Calls& calls) {
  std::vector<std::string> names;
  int count = 0;
  ibv_context** const devices = calls.get_devices(&count);
  if (devices == nullptr) return names;
  for (int i = 0; i < count; ++i) {
    if (HasActivePort(calls, devices[i])) names.emplace_back(devices[i]->device->name);
  }
  calls.free_devices(devices);
  return names;
}

}  // namespace esdp::fabric::verbs
