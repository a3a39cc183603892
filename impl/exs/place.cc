#include "impl/exs/place.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "impl/switch/libc_calls.h"

namespace esdp::exs {

std::unique_ptr<Place> Place::Open() {
  std::unique_ptr<Place> place(new Place);
  if (!place->pair_.Open()) return nullptr;
  if (fcntl(place->pair_.fd(), F_SETFL, 0) != 0) return nullptr;
  return place->Note(place->pair_.fd()) ? std::move(place) : nullptr;
}

std::unique_ptr<Place> Place::OpenOver(int number) {
  std::unique_ptr<Place> place(new Place);
  const int descriptor_flags = fcntl(number, F_GETFD);
  const int status_flags = fcntl(number, F_GETFL);
  if (descriptor_flags < 0 || status_flags < 0 || !place->pair_.Open()) return nullptr;
  (void)fcntl(place->pair_.fd(), F_SETFL, status_flags & O_NONBLOCK);
  const int close_on_exec = (descriptor_flags & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0;
  if (dup3(place->pair_.fd(), number, close_on_exec) < 0) return nullptr;
  return place->Note(number) ? std::move(place) : nullptr;
}

bool Place::Note(int number) {
  struct stat status {};
  pair_.Lend(number);
  number_ = number;
  if (fstat(number, &status) != 0) return false;
  device_ = status.st_dev;
  inode_ = status.st_ino;
  return true;
}

Place::~Place() {
  (void)GiveUp();
  StopWatching();
}

bool Place::Holds() const {
  struct stat status {};
  return !given_up_.load() && fstat(number_, &status) == 0 && status.st_dev == device_ &&
         status.st_ino == inode_;
}

bool Place::GiveUp() {
  StopWatching();
  if (!Holds() || given_up_.exchange(true)) return false;
  libc::real.close.get()(number_);
  return true;
}

void Place::Watch(Helper& helper, std::function<void()> closed) {
  watch_name_ = helper.NewName();
  watched_by_.store(&helper);
  (void)helper.Watch(pair_.hidden_fd(), 0, watch_name_, std::move(closed));
}

void Place::StopWatching() {
  Helper* const helper = watched_by_.exchange(nullptr);
  if (helper != nullptr && !pair_.has_ended()) helper->Unwatch(pair_.hidden_fd(), watch_name_);
}

}  // namespace esdp::exs
