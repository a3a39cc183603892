#include "tools/esdp_serve/signals.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include <array>
#include <csignal>
#include <utility>

namespace esdp_serve {

Signals::Signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond the limit is an error of write
  signals_ = esdp_files::Descriptor(signalfd(-1, &set, SFD_CLOEXEC));
  ends_ = esdp_files::Descriptor(eventfd(0, EFD_CLOEXEC));
}

void Signals::Start(std::function<void()> call) {
  thread_ = std::thread([this, call = std::move(call)] {
    std::array<pollfd, 2> waits = {{{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                                    {.fd = ends_.get(), .events = POLLIN, .revents = 0}}};
    while (poll(waits.data(), waits.size(), -1) >= 0 && waits[1].revents == 0) {
      signalfd_siginfo one{};
      if (read(signals_.get(), &one, sizeof one) == sizeof one) call();
    }
  });
}

Signals::~Signals() {
  eventfd_write(ends_.get(), 1);
  if (thread_.joinable()) thread_.join();
}

}  // namespace esdp_serve
