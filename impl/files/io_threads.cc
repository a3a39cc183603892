#include "impl/files/io_threads.h"

#include <pthread.h>
#include <signal.h>

#include <new>
#include <system_error>
#include <thread>

namespace esdp::files {
namespace {

// The application's handlers run on its own threads.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

IoThreads::~IoThreads() {
  if (shared_ == nullptr || forgotten_) return;
  const std::lock_guard lock(shared_->mutex);
  shared_->ending = true;
  shared_->wakes.notify_all();
}

absl::Status IoThreads::Start() try {
  const std::lock_guard lock(mutex_);
  if (shared_ == nullptr) shared_ = std::make_shared<Shared>();
  const SignalsBlocked blocked;
  for (; running_ < threads_; ++running_) {
    std::thread thread([shared = shared_] { Serve(shared); });
    pthread_setname_np(thread.native_handle(), "esdp-files");
    thread.detach();
  }
  return absl::OkStatus();
} catch (const std::system_error&) {
  return absl::ResourceExhaustedError("no thread could be made to read files");
} catch (const std::bad_alloc&) {
  return absl::ResourceExhaustedError("no memory for the threads that read files");
}

void IoThreads::Run(Job& job) {
  if (threads_ == 0) return job.RunIo();
  job.next_ = nullptr;
  const std::lock_guard lock(shared_->mutex);
  (shared_->first == nullptr ? shared_->first : shared_->last->next_) = &job;
  shared_->last = &job;
  shared_->wakes.notify_one();
}

void IoThreads::Serve(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock(shared->mutex);
  for (;;) {
    shared->wakes.wait(lock, [&] { return shared->first != nullptr || shared->ending; });
    if (shared->first == nullptr) return;
    Job* const job = shared->first;
    shared->first = job->next_;
    lock.unlock();
    job->RunIo();
    lock.lock();
  }
}

}  // namespace esdp::files
