#include "tools/esdp_serve/workers.h"

#include <utility>

namespace esdp_serve {

Workers::Workers(int threads, std::function<void()> wake) : wake_(std::move(wake)) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wanted_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::Run(std::function<void()> work, std::function<void()> done) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back({std::move(work), std::move(done)});
  }
  wanted_.notify_one();
}

void Workers::TakeDone() {
  std::vector<std::function<void()>> done;
  {
    const std::lock_guard lock(mutex_);
    done.swap(done_);
  }
  for (const auto& call : done) call();
}

void Workers::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wanted_.wait(lock, [this] { return ends_ || !jobs_.empty(); });
    if (ends_) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job.work();
    lock.lock();
    done_.push_back(std::move(job.done));
    const bool first = done_.size() == 1;
    lock.unlock();
    if (first) wake_();
    lock.lock();
  }
}

}  // namespace esdp_serve
