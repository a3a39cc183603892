#ifndef ESDP_TOOLS_ESDP_DIAG_DEVICES_H_
#define ESDP_TOOLS_ESDP_DIAG_DEVICES_H_

#include <filesystem>
#include <string>
#include <vector>

// What the system says of its RDMA devices, read from /sys below `root`.

namespace esdp_diag {

struct Gid {
  int index = 0;
  std::string value;
  std::string type;       // "IB/RoCE v1" or "RoCE v2"
  std::string interface;  // of the network, empty on InfiniBand
};

struct DevicePort {
  int number = 0;
  std::string state = {};       // "ACTIVE", "DOWN", "INIT", ...
  std::string link_layer = {};  // "Ethernet" or "InfiniBand"
  std::string rate = {};
  std::vector<Gid> gids = {};  // those that are set
};

struct Device {
  std::string name;
  std::vector<DevicePort> ports = {};
};

std::vector<Device> ReadDevices(const std::filesystem::path& root);

// Of the modules that programs need, those that are not loaded.
std::vector<std::string> MissingModules(const std::filesystem::path& root);

}  // namespace esdp_diag

#endif  // ESDP_TOOLS_ESDP_DIAG_DEVICES_H_
