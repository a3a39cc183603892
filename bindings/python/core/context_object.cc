#include "bindings/python/core/context_object.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "absl/types/span.h"
#include "bindings/python/core/errors.h"
#include "bindings/python/core/names.h"
#include "bindings/python/core/options.h"
#include "bindings/python/core/unlocked.h"

namespace py = pybind11;

namespace esdp::python {
namespace {

constexpr uint32_t kClosingDepth = 64;

// The open ones, for the end of the interpreter. Never destroyed.
std::vector<std::weak_ptr<ContextObject>>& Open() {
  static auto* const open = new std::vector<std::weak_ptr<ContextObject>>();
  return *open;
}

template <typename T>
void ForgetTheGone(std::vector<std::weak_ptr<T>>& all) {
  std::erase_if(all, [](const std::weak_ptr<T>& one) { return one.expired(); });
}

}  // namespace

std::shared_ptr<ContextObject> ContextObject::Open(const py::kwargs& arguments) {
  std::shared_ptr<ContextObject> world;
  const py::dict members = arguments.attr("copy")();
  if (members.contains("world_of")) {
    world = Cast<std::shared_ptr<ContextObject>>(members.attr("pop")("world_of"),
                                                 "world_of is a Context");
  }
  ContextOptions options = ContextOptionsFrom(members);
  auto object = std::make_shared<ContextObject>(options.fabric.starts_with("sim"));
  if (world != nullptr) options.world_of = &world->context_;
  options.log = [lines = object->log_](std::string_view line) { lines->Add(line); };
  object->world_ = std::move(world);
  absl::StatusOr<Context> opened = absl::UnknownError("");
  {
    const Unlocked unlocked;
    opened = Context::Open(options);
  }
  object->context_ = Value(std::move(opened));
  object->closed_ = false;
  object->closing_ = Value(object->context_.CreateQueue({.depth = kClosingDepth}));
  ForgetTheGone(python::Open());
  python::Open().push_back(object);
  return object;
}

ContextObject::~ContextObject() {
  if (!closed_) WarnUnclosed("Context");
  Quietly([this] {
    const Unlocked unlocked;
    closing_ = EventQueue();
    context_ = Context();
    ending_.clear();
  });
}

template <typename T>
std::shared_ptr<T> ContextObject::Remember(std::vector<std::weak_ptr<T>>& children,
                                           std::shared_ptr<T> child) {
  if (ended_) {
    child->OnContextClosed();
    return child;
  }
  if (children.size() == children.capacity()) ForgetTheGone(children);
  children.push_back(child);
  return child;
}

std::shared_ptr<RegionObject> ContextObject::Register(py::handle memory,
                                                      std::optional<bool> writable,
                                                      std::string_view exposure) {
  HeldMemory held = HeldMemory::Of(memory);
  if (writable.value_or(false) && !held.writable) {
    RaiseTypeError("this memory is read-only: register it with writable=False, to send from it");
  }
  held.writable = writable.value_or(held.writable);
  const RegisterOptions options{.local_write = held.writable, .exposure = ExposureFrom(exposure)};
  absl::StatusOr<Region> region = Region();
  {
    const Unlocked unlocked;
    region = options.local_write ? context_.Register(held.span(), options)
                                 : context_.RegisterReadOnly(held.span(), options);
  }
  return Remember(regions_, std::make_shared<RegionObject>(
                                shared_from_this(), Value(std::move(region)), std::move(held)));
}

std::shared_ptr<RegionObject> ContextObject::RegisterDmaBuf(py::handle buffer, uint64_t offset,
                                                            uint64_t length,
                                                            std::string_view exposure) {
  const int fd = PyObject_AsFileDescriptor(buffer.ptr());
  if (fd < 0) throw py::error_already_set();
  const RegisterOptions options{.exposure = ExposureFrom(exposure)};
  absl::StatusOr<Region> region = Region();
  {
    const Unlocked unlocked;
    region = context_.RegisterDmaBuf(fd, offset, length, options);
  }
  // Nothing of this process is held, or could be seen.
  HeldMemory unseen{.view = {}, .base = nullptr, .length = length, .writable = false};
  return Remember(regions_, std::make_shared<RegionObject>(
                                shared_from_this(), Value(std::move(region)), std::move(unseen)));
}

std::shared_ptr<RegionObject> ContextObject::Allocate(size_t bytes, std::string_view exposure,
                                                      std::string_view shareable) {
  const AllocateOptions options{.registration = {.exposure = ExposureFrom(exposure)},
                                .shareable = ShareableFrom(shareable)};
  absl::StatusOr<Region> allocated = Region();
  {
    const Unlocked unlocked;
    allocated = context_.Allocate(bytes, options);
  }
  Region region = Value(std::move(allocated));
  HeldMemory memory{.view = {}, .base = region.info().base, .length = bytes, .writable = true};
  return Remember(regions_, std::make_shared<RegionObject>(shared_from_this(), std::move(region),
                                                           std::move(memory)));
}

std::shared_ptr<QueueObject> ContextObject::CreateQueue(const py::kwargs& arguments) {
  EventQueue queue = Value(context_.CreateQueue(QueueOptionsFrom(arguments)));
  return Remember(queues_, std::make_shared<QueueObject>(shared_from_this(), std::move(queue)));
}

std::shared_ptr<SocketObject> ContextObject::CreateSocket(std::string_view family,
                                                          const py::kwargs& arguments) {
  Socket socket = Value(
      context_.CreateSocket(FamilyFrom(family), SocketType::kStream, SocketOptionsFrom(arguments)));
  return std::make_shared<SocketObject>(shared_from_this(), std::move(socket));
}

std::shared_ptr<SocketObject> ContextObject::TakeAccepted(const EventObject& event) {
  Socket socket = Value(context_.TakeAccepted(event.event.accepted));
  return std::make_shared<SocketObject>(shared_from_this(), std::move(socket));
}

int ContextObject::MoveFor(double seconds) {
  const absl::Duration max = DurationFrom(seconds);
  absl::StatusOr<int> rounds = 0;
  {
    const Unlocked unlocked;
    rounds = context_.Progress(max);
  }
  return Value(std::move(rounds));
}

// --- the end -------------------------------------------------------------------------------------

void ContextObject::CloseAlone(Socket& socket, CloseMode mode) {
  // A connection that has ended by itself has nothing left to close.
  (void)PostClose(socket, mode, 0);
}

void ContextObject::CloseLater(std::shared_ptr<Stream> stream) {
  const uint64_t cookie = ++last_cookie_;
  if (!PostClose(stream->socket(), CloseMode::kGraceful, cookie)) return;
  ending_.emplace(cookie, std::move(stream));
}

bool ContextObject::PostClose(Socket& socket, CloseMode mode, uint64_t cookie) {
  std::vector<Event> ended(kClosingDepth);
  const size_t count = closing_.TryDequeue(absl::MakeSpan(ended)).value_or(0);
  for (size_t i = 0; i < count; ++i) ending_.erase(ended[i].cookie);
  absl::StatusOr<OpId> posted = socket.Close(mode, {closing_, cookie});
  if (KindOf(posted.status()) == ErrorKind::kQueueFull) {
    Check(closing_.Resize(2 * size_t{closing_.Stats().depth}));
    posted = socket.Close(mode, {closing_, cookie});
  }
  return posted.ok();
}

absl::Status ContextObject::End(double timeout) {
  const absl::Time deadline = context_.Now() + DurationFrom(timeout);
  absl::Status done;
  {
    const Unlocked unlocked;
    done = context_.Close(deadline);
  }
  // What another thread makes from here on ends at once (Remember).
  ended_ = true;
  ending_.clear();
  for (const auto& queue : std::exchange(queues_, {})) {
    if (const auto alive = queue.lock()) alive->OnContextClosed();
  }
  for (const auto& region : std::exchange(regions_, {})) {
    if (const auto alive = region.lock()) alive->OnContextClosed();
  }
  log_->HandOver();
  return done;
}

void ContextObject::Close(double timeout) {
  if (std::exchange(closed_, true)) return;
  Check(End(timeout));
}

void ContextObject::CloseAll() noexcept {
  for (const auto& context : std::vector(python::Open())) {
    const auto alive = context.lock();
    if (alive == nullptr || std::exchange(alive->closed_, true)) continue;
    Quietly([&alive] { (void)alive->End(0); });
  }
  // Threads that waited come back now, while there is an interpreter to come back to.
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (Unlocked::count() > 0 && std::chrono::steady_clock::now() < give_up) {
    Quietly([] {
      const py::gil_scoped_release release;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
  }
}

}  // namespace esdp::python
