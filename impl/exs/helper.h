#ifndef ESDP_IMPL_EXS_HELPER_H_
#define ESDP_IMPL_EXS_HELPER_H_

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "absl/time/time.h"
#include "esdp/context.h"

namespace esdp::exs {

// The Helper is the thread that carries out what the library below has no operation for: files,
// readiness of any descriptor, notices of time, signals, and the last second of a process.
//
//   Owns:     its thread, its event queue, and what it was given to do.
//   Threads:  any may call. All that is called back runs on the helper's thread, one at a time.
//   Blocks:   Flush, for a second at most. What is called back may read files.
//   Units:    -
//   Errors:   an errno, 0 for none.
class Helper {
 public:
  using Watched = std::function<void()>;
  using Ended = std::function<void(const Event&)>;

  explicit Helper(Context& context) : context_(context) {}
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  // Starts the thread unless it is there.
  int Start();

  void Run(std::function<void()> task);
  void RunAt(absl::Time when, std::function<void()> task);
  // Posts below; `ended` is called with the terminal event if that answers OK.
  absl::StatusOr<OpId> Post(const std::function<absl::StatusOr<OpId>(const OpArgs&)>& post,
                            Ended ended);
  // Calls once when the descriptor has one of these events of epoll. `name`, not 0, is for Unwatch.
  // EPERM: it is always ready.
  int Watch(int fd, uint32_t events, uint64_t name, Watched ready);
  void Unwatch(int fd, uint64_t name);
  uint64_t NewName() { return names_.fetch_add(1) + kFirstName; }

  // A send that the helper carries out begins and ends: it is let leave before the process ends.
  void BeginSend() { sends_.fetch_add(1); }
  void EndSend() { sends_.fetch_sub(1); }

  // Lets what was posted leave. Takes no lock: the thread that exits may have been interrupted
  // with any.
  void Flush();

 private:
  static constexpr uint64_t kDoorbell = 0;
  static constexpr uint64_t kEvents = 1;
  static constexpr uint64_t kFirstName = 2;

  static void* ThreadMain(void* helper);
  int OpenDescriptors();
  void Ring() const;
  [[noreturn]] void Loop();
  int NextTimeout();
  void RunTasks();
  void RunTimers();
  void TakeEvents();
  void FlushWhenSent();

  Context& context_;
  EventQueue events_;
  int epoll_fd_ = -1;
  int doorbell_fd_ = -1;
  std::atomic<uint64_t> names_{0};
  std::atomic<int> sends_{0};
  std::atomic<bool> flushing_{false};
  absl::Time flush_by_ = absl::InfiniteFuture();  // of its thread
  std::atomic<uint32_t> flushed_{0};
  std::atomic<bool> started_{false};

  std::mutex mutex_;
  std::vector<std::function<void()>> tasks_;
  std::multimap<absl::Time, std::function<void()>> timers_;
  std::unordered_map<uint64_t, Watched> watched_;
  std::unordered_map<uint64_t, Ended> ended_;
};

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_HELPER_H_
