#ifndef ESDP_TOOLS_ESDP_SERVE_WORKERS_H_
#define ESDP_TOOLS_ESDP_SERVE_WORKERS_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace esdp_serve {

// Workers wait for the file system, so that the thread of the server does not.
//
//   Owns:     its threads, and the jobs that wait.
//   Threads:  Run and TakeDone: the server's. `work` runs on one of the workers, `done` in TakeDone.
//   Blocks:   the destructor, until what runs has ended; jobs that have not begun are dropped.
//   Units:    -
//   Errors:   -
class Workers {
 public:
  // `wake` is called, on a worker, when there is something for TakeDone.
  Workers(int threads, std::function<void()> wake);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void Run(std::function<void()> work, std::function<void()> done);
  // Calls `done` of each job that has ended.
  void TakeDone();

 private:
  struct Job {
    std::function<void()> work;
    std::function<void()> done;
  };
  void Work();

  std::function<void()> wake_;
  std::mutex mutex_;
  std::condition_variable wanted_;
  std::deque<Job> jobs_;
  std::vector<std::function<void()>> done_;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace esdp_serve

#endif  // ESDP_TOOLS_ESDP_SERVE_WORKERS_H_
