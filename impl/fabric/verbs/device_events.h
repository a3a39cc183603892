#ifndef ESDP_IMPL_FABRIC_VERBS_DEVICE_EVENTS_H_
#define ESDP_IMPL_FABRIC_VERBS_DEVICE_EVENTS_H_

#include <cstdint>
#include <deque>
#include <memory>

#include "absl/status/status.h"
#include "impl/fabric/verbs/device.h"

namespace esdp::fabric::verbs {

// What a device tells besides completions, for one of the fabrics on it. librdmacm opens a device
// once for the whole process, and each event can be read once: whoever reads it hands it on, that
// of a queue pair to the one that its qp_context names, any other to all.
//
//   Owns:     its descriptor. The device outlives it.
//   Threads:  not thread-safe; those of other fabrics may be used at the same time. fd() may be
//             waited on by any.
//   Blocks:   never.
//   Units:    ports count from 1.
//   Errors:   Open fails where the system has no descriptor.
class DeviceEvents {
 public:
  struct Event {
    ibv_event_type type = IBV_EVENT_DEVICE_FATAL;
    uint32_t queue_pair = 0;  // its number, if it is of one
    uint8_t port = 0;         // if it is of one
    bool of_queue_pair = false;
  };

  DeviceEvents() = default;
  ~DeviceEvents();
  DeviceEvents(const DeviceEvents&) = delete;
  DeviceEvents& operator=(const DeviceEvents&) = delete;

  absl::Status Open(const Device& device);
  // Readable while another fabric has read for this one; the device's own while nobody has. Two and
  // not one over both, since descriptors of descriptors may only be so deep.
  int fd() const { return told_fd_; }

  bool Take(Event& event);

 private:
  class Source;  // one for each device in use
  friend class Source;

  std::shared_ptr<Source> source_;
  int told_fd_ = -1;
  // Of these Source's lock takes care.
  std::deque<Event> told_;
  bool is_told_ = false;
};

}  // namespace esdp::fabric::verbs

#endif  // ESDP_IMPL_FABRIC_VERBS_DEVICE_EVENTS_H_
