#ifndef ESDP_IMPL_FILES_IO_THREADS_H_
#define ESDP_IMPL_FILES_IO_THREADS_H_

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "absl/status/status.h"

namespace esdp::files {

// Threads that wait for files, so that nobody else has to.
//
//   Owns:     its threads, which begin at Start and end behind the destructor, by themselves: one
//             that waits for a medium holds nobody up. Not the jobs.
//   Threads:  any.
//   Blocks:   never; with no threads Run is as long as the job.
//   Units:    –
//   Errors:   Start: ResourceExhausted.
class IoThreads {
 public:
  // Stays where it is until its Run has been called; who makes it keeps it alive.
  class Job {
   public:
    virtual ~Job() = default;
    virtual void RunIo() = 0;

   private:
    friend class IoThreads;
    Job* next_ = nullptr;
  };

  // 0: whoever calls Run runs the job.
  explicit IoThreads(uint32_t threads) : threads_(threads) {}
  ~IoThreads();
  IoThreads(const IoThreads&) = delete;
  IoThreads& operator=(const IoThreads&) = delete;

  // Before the first Start.
  void SetThreads(uint32_t threads) { threads_ = threads; }
  absl::Status Start();  // does nothing once they run
  // In a child of fork(): they are the parent's, who may have held their lock at that moment.
  void Forget() { forgotten_ = true; }
  // Jobs begin in this order.
  void Run(Job& job);

 private:
  // What the threads know: it outlives this object while one of them runs.
  struct Shared {
    std::mutex mutex;
    std::condition_variable wakes;
    Job* first = nullptr;
    Job* last = nullptr;
    bool ending = false;
  };
  static void Serve(const std::shared_ptr<Shared>& shared);

  uint32_t threads_;
  std::mutex mutex_;
  uint32_t running_ = 0;
  bool forgotten_ = false;
  std::shared_ptr<Shared> shared_;
};

}  // namespace esdp::files

#endif  // ESDP_IMPL_FILES_IO_THREADS_H_
