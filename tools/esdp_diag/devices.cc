#include "tools/esdp_diag/devices.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <system_error>
#include <utility>

namespace esdp_diag {
namespace {

using std::filesystem::path;

// The first line of a file, empty when it cannot be read.
std::string FirstLine(const path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

// The entries of a folder whose names are numbers, in order.
std::vector<int> NumberedEntries(const path& folder) {
  std::vector<int> numbers;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    int number = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), number).ec == std::errc()) {
      numbers.push_back(number);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

bool IsSet(const std::string& gid) { return gid.find_first_not_of("0:") != std::string::npos; }

DevicePort ReadPort(const path& folder, int number) {
  DevicePort port{.number = number};
  const std::string state = FirstLine(folder / "state");  // "4: ACTIVE"
  port.state = state.size() > 3 ? state.substr(3) : "unknown";
  port.link_layer = FirstLine(folder / "link_layer");
  port.rate = FirstLine(folder / "rate");
  for (int index : NumberedEntries(folder / "gids")) {
    const std::string name = std::to_string(index);
    const std::string value = FirstLine(folder / "gids" / name);
    if (!IsSet(value)) continue;
    port.gids.push_back({index, value, FirstLine(folder / "gid_attrs/types" / name),
                         FirstLine(folder / "gid_attrs/ndevs" / name)});
  }
  return port;
}

}  // namespace

std::vector<Device> ReadDevices(const path& root) {
  std::vector<Device> devices;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(root / "sys/class/infiniband", error)) {
    Device device{.name = entry.path().filename()};
    for (int number : NumberedEntries(entry.path() / "ports")) {
      device.ports.push_back(ReadPort(entry.path() / "ports" / std::to_string(number), number));
    }
    devices.push_back(std::move(device));
  }
  std::sort(devices.begin(), devices.end(),
            [](const Device& a, const Device& b) { return a.name < b.name; });
  return devices;
}

std::vector<std::string> MissingModules(const path& root) {
  std::vector<std::string> missing;
  for (const char* module : {"ib_uverbs", "rdma_ucm"}) {
    if (!std::filesystem::exists(root / "sys/module" / module)) missing.push_back(module);
  }
  return missing;
}

}  // namespace esdp_diag
