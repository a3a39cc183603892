#include "impl/fabric/verbs/device_events.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "impl/base/made_once.h"
#include "impl/base/status.h"

namespace esdp::fabric::verbs {

class DeviceEvents::Source {
 public:
  Source(const Calls& calls, ibv_context* context) : calls_(calls), context_(context) {}

  // That of a device, which is made for its first listener and goes with its last.
  static std::shared_ptr<Source> Of(const Device& device);

  void Add(DeviceEvents& listener) {
    const std::lock_guard<std::mutex> lock(mutex_);
    listeners_.push_back(&listener);
  }
  void Remove(DeviceEvents& listener) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::erase(listeners_, &listener);
  }

  bool Take(DeviceEvents& listener, Event& event) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Read(listener);
    if (listener.told_.empty()) return false;
    event = listener.told_.front();
    listener.told_.pop_front();
    if (listener.told_.empty() && listener.is_told_) {
      uint64_t count = 0;
      (void)!read(listener.told_fd_, &count, sizeof count);
      listener.is_told_ = false;
    }
    return true;
  }

 private:
  void Read(const DeviceEvents& reader) {
    ibv_async_event told;
    while (calls_.get_async_event(context_, &told) == 0) {
      Event event{.type = told.event_type};
      event.of_queue_pair = event.type >= IBV_EVENT_QP_FATAL && event.type <= IBV_EVENT_SQ_DRAINED;
      const void* of = nullptr;
      if (event.of_queue_pair) {
        event.queue_pair = told.element.qp->qp_num;
        of = told.element.qp->qp_context;
      } else {
        event.port = static_cast<uint8_t>(told.element.port_num);
      }
      calls_.ack_async_event(&told);
      for (DeviceEvents* const each : listeners_) {
        if (event.of_queue_pair && each != of) continue;
        each->told_.push_back(event);
        if (each != &reader) Wake(*each);
      }
    }
  }

  static void Wake(DeviceEvents& listener) {
    if (listener.is_told_) return;
    const uint64_t one = 1;
    listener.is_told_ = write(listener.told_fd_, &one, sizeof one) == sizeof one;
  }

  const Calls& calls_;
  ibv_context* const context_;
  std::mutex mutex_;
  std::vector<DeviceEvents*> listeners_;
};

std::shared_ptr<DeviceEvents::Source> DeviceEvents::Source::Of(const Device& device) {
  static constinit std::mutex mutex;
  static constinit MadeOnce<std::map<ibv_context*, std::weak_ptr<Source>>> sources;
  const std::lock_guard<std::mutex> lock(mutex);
  std::weak_ptr<Source>& known = sources.Get()[device.context()];
  std::shared_ptr<Source> source = known.lock();
  if (source == nullptr) {
    source = std::make_shared<Source>(device.calls(), device.context());
    known = source;
  }
  return source;
}

absl::Status DeviceEvents::Open(const Device& device) {
  told_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (told_fd_ < 0) {
    return MakeStatus(
        absl::StatusCode::kResourceExhausted,
        std::string("no descriptor for the events of an RDMA device: ") + strerror(errno));
  }
  source_ = Source::Of(device);
  source_->Add(*this);
  return absl::OkStatus();
}

DeviceEvents::~DeviceEvents() {
  if (source_ != nullptr) source_->Remove(*this);
  if (told_fd_ >= 0) close(told_fd_);
}

bool DeviceEvents::Take(Event& event) { return source_->Take(*this, event); }

}  // namespace esdp::fabric::verbs
