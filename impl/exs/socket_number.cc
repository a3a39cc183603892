#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "impl/exs/library.h"
#include "impl/exs/socket.h"

// The descriptor that holds a socket's number.

namespace esdp::exs {

namespace {

// A socket of the system that is not connected: it is close-on-exec, its number cannot be
// another's, and whoever reads or writes it is refused.
int OpenPlace() { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }

}  // namespace

std::shared_ptr<ExsSocket> ExsSocket::Make(Socket socket, int family) {
  const int number = OpenPlace();
  if (number < 0) return nullptr;
  return std::shared_ptr<ExsSocket>(new ExsSocket(std::move(socket), family, number));
}

std::shared_ptr<ExsSocket> ExsSocket::MakeOver(int number, Socket socket, int family) {
  const OwnedFd place(OpenPlace());
  const int descriptor_flags = fcntl(number, F_GETFD);
  const int status_flags = fcntl(number, F_GETFL);
  if (!place.valid() || descriptor_flags < 0 || status_flags < 0) return nullptr;
  (void)fcntl(place.get(), F_SETFL, status_flags & O_NONBLOCK);
  const int close_on_exec = (descriptor_flags & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0;
  if (dup3(place.get(), number, close_on_exec) < 0) return nullptr;
  return std::shared_ptr<ExsSocket>(new ExsSocket(std::move(socket), family, number));
}

ExsSocket::ExsSocket(Socket socket, int family, int number)
    : family_(family), number_(number), socket_(std::move(socket)) {
  struct stat status {};
  fstat(number, &status);
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

ExsSocket::~ExsSocket() {
  GiveUpNumber();
  StopWatching();
}

bool ExsSocket::HoldsNumber() const {
  struct stat status {};
  return !given_up_.load() && fstat(number_, &status) == 0 && status.st_dev == device_ &&
         status.st_ino == inode_;
}

void ExsSocket::GiveUpNumber() {
  StopWatching();
  if (HoldsNumber() && !given_up_.exchange(true)) close(number_);
}

namespace {

// A connection to the descriptor that nobody accepts: it hangs up once the descriptor has no copy
// left. -1 where that is not to be had; then only the next call notices.
int ConnectTo(int number) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socklen_t len = sizeof(sa_family_t);  // a name that the system chooses
  auto* const name = reinterpret_cast<sockaddr*>(&address);
  if (bind(number, name, len) != 0 || listen(number, 0) != 0) return -1;
  len = sizeof(address);
  if (getsockname(number, name, &len) != 0) return -1;
  const int connected = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (connected < 0) return -1;
  if (connect(connected, name, len) == 0) return connected;
  close(connected);
  return -1;
}

}  // namespace

void ExsSocket::WatchNumber() {
  const int watched = ConnectTo(number_);
  if (watched < 0) return;
  Helper& helper = Library::Current()->helper();
  watch_name_ = helper.NewName();
  watched_.store(watched);
  (void)helper.Watch(watched, 0, watch_name_, [self = weak_from_this()] {
    if (const auto socket = self.lock(); socket != nullptr) socket->OnNumberClosed();
  });
}

void ExsSocket::StopWatching() {
  const int watched = watched_.exchange(-1);
  if (watched < 0) return;
  Library::Current()->helper().Unwatch(watched, watch_name_);
  close(watched);
}

// On the helper's thread. The number may be another's already.
void ExsSocket::OnNumberClosed() {
  if (given_up_.exchange(true)) return;
  Library::Current()->numbers().RemoveSocket(number_, this);
  (void)Abandon(CloseMode::kAbort);
}

}  // namespace esdp::exs
