#include "impl/exs/library.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <memory>
#include <span>
#include <utility>

#include "impl/exs/convert.h"
#include "impl/exs/environment.h"
#include "impl/exs/libc_taker.h"

namespace esdp::exs {
namespace {

constexpr uint32_t kBackgroundDepth = 1u << 16;

std::atomic<Library*> current{nullptr};
std::atomic<Numbers*> parents_numbers{nullptr};  // of a process that had one, and forked this one
std::atomic<bool> opening{false};  // one thread at a time; a child of fork takes it back
bool hooked = false;               // BeforeFork and those behind it are called

}  // namespace

Library::Library() : process_(getpid()) {}

bool Library::IsOfThisProcess() const { return process_ == getpid(); }

Library* Library::Current() { return current.load(std::memory_order_acquire); }

int Library::WhyNot() { return parents_numbers.load() != nullptr ? EPERM : ENXIO; }

bool Library::IsParents(int number) {
  Numbers* numbers = parents_numbers.load();
  return numbers != nullptr && numbers->Has(number);
}

int Library::Open(const std::string& fabric) {
  if (const Library* open = Current(); open != nullptr) {
    return fabric.empty() || fabric == open->fabric_ ? 0 : EBUSY;
  }
  if (opening.exchange(true)) return EAGAIN;
  int error = 0;
  if (Current() == nullptr) {
    hooked = hooked || pthread_atfork(BeforeFork, AfterForkInParent, AfterForkInChild) == 0;
    std::unique_ptr<Library> library(new Library);
    error = hooked ? library->OpenContext(fabric.empty() ? "auto" : fabric) : ENOBUFS;
    if (error == 0) current.store(library.release(), std::memory_order_release);
    if (error == 0) TakeCallsOfLibc();
  }
  opening.store(false);
  return error;
}

int Library::OpenContext(const std::string& fabric) {
  fabric_ = fabric;
  pins_.SetLimit(PinLimitOfEnvironment());
  absl::StatusOr<Context> context = Context::Open({.fabric = fabric});
  if (!context.ok()) {
    const bool unknown = absl::IsInvalidArgument(context.status());
    return unknown ? ENODEV : ErrnoOf(context.status());
  }
  context_ = *std::move(context);
  absl::StatusOr<EventQueue> background = context_.CreateQueue({.depth = kBackgroundDepth});
  if (!background.ok()) return ErrnoOf(background.status());
  background_ = *std::move(background);
  return 0;
}

void Library::CloseInBackground(Socket& socket, CloseMode mode) {
  const std::lock_guard lock(background_mutex_);
  std::array<Event, 16> ended;
  while (background_.TryDequeue(std::span(ended)).value_or(0) == ended.size()) continue;
  // What cannot be closed so ends with the last holder of the socket.
  (void)socket.Close(mode, {.queue = background_});
}

void Library::Flush() {
  if (Library* open = Current(); open != nullptr) open->helper_.Flush();
}

namespace {

// The library below is still there then: this one needs it.
[[gnu::destructor]] void OnExit() { Library::Flush(); }

}  // namespace

void Library::BeforeFork() {
  if (Library* open = Current(); open != nullptr) open->numbers_.Lock();
}

void Library::AfterForkInParent() {
  if (Library* open = Current(); open != nullptr) open->numbers_.Unlock();
}

void Library::AfterForkInChild() {
  Library* parents = current.exchange(nullptr);
  opening.store(false);
  hooked = true;  // also where the parent forked just then
  if (parents == nullptr) return;
  parents->numbers_.Unlock();
  parents_numbers.store(&parents->numbers_);
}

}  // namespace esdp::exs
