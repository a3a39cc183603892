#include <signal.h>

#include <algorithm>
#include <optional>
#include <span>

#include "impl/exs/convert.h"
#include "impl/exs/entry.h"
#include "impl/exs/environment.h"

// exs_init, exs_q* and exs_m*.

namespace esdp::exs {
namespace {

constexpr int kDepthMax = 1 << 19;

int Initialise(int version, const char* fabric) noexcept {
  const int before = errno;
  int error = EINVAL;
  try {
    if (version == EXS_VERSION1) error = Library::Open(fabric == nullptr ? "" : fabric);
  } catch (const std::bad_alloc&) {
    error = ENOBUFS;
  }
  errno = error != 0 ? error : before;
  return error != 0 ? -1 : version;
}

template <typename Call>
int EnterQueue(exs_qhandle_t queue, Call&& call) {
  return Enter([&](Library& library) {
    std::shared_ptr<Queue> found;
    if (const int error = library.numbers().Find(queue, &found); error != 0) return Failed(error);
    if (!found->HoldsNumber()) {
      library.numbers().LoseQueue(found);
      return Failed(EBADF);
    }
    return call(library, *found);
  });
}

Answer Dequeue(Library& library, Queue& queue, exs_event_t* events, int count,
               const timeval* timeout) {
  const bool exactly = count < 0;
  const auto n = static_cast<size_t>(exactly ? -static_cast<int64_t>(count) : count);
  if (n > EXS_EVTVEC_MAX && exactly) return Failed(EINVAL);
  if (exactly && n > static_cast<size_t>(queue.depth())) return Failed(EINVAL);
  absl::Time deadline = absl::InfiniteFuture();
  if (timeout != nullptr) {
    const std::optional<absl::Duration> wait = ToDuration(*timeout);
    if (!wait.has_value()) return Failed(EINVAL);
    deadline =
        *wait == absl::ZeroDuration() ? absl::InfinitePast() : library.context().After(*wait);
  }
  if (n == 0) return Value(0);
  if (events == nullptr) return Failed(EFAULT);
  size_t taken = 0;
  const std::span out(events, std::min<size_t>(n, EXS_EVTVEC_MAX));
  const int error = queue.Dequeue(out, exactly ? n : 1, deadline, &taken);
  if (error == ETIMEDOUT && !exactly) return Value(0);
  return error != 0 ? Failed(error) : Value(static_cast<int>(taken));
}

int ModifySignal(Queue& queue, const exs_signal_t& signal) {
  const bool known =
      signal.exs_sig_state == EXS_SIG_ENABLE || signal.exs_sig_state == EXS_SIG_DISABLE;
  const bool enabled = signal.exs_sig_state == EXS_SIG_ENABLE;
  if (!known || signal.exs_sig_number < 0 || signal.exs_sig_number > SIGRTMAX) return EINVAL;
  if (enabled && signal.exs_sig_number == 0) return EINVAL;
  return queue.SetSignal(signal.exs_sig_number, enabled);
}

int ModifyNumber(Queue& queue, int attribute, int wanted) {
  if (attribute == EXS_QATTR_DEPTH) {
    return wanted < 1 || wanted > kDepthMax ? EINVAL : queue.Resize(wanted);
  }
  const bool known = wanted >= EXS_WAIT_ADAPTIVE && wanted <= EXS_WAIT_BUSY_POLL;
  return known ? queue.SetWait(wanted) : EINVAL;
}

Answer Modify(Queue& queue, int attribute, const void* value, size_t len) {
  if (attribute < EXS_QATTR_DEPTH || attribute > EXS_QATTR_WAIT) return Failed(EINVAL);
  if (attribute == EXS_QATTR_EVENTS) return Failed(EOPNOTSUPP);
  if (value == nullptr) return Failed(EFAULT);
  if (attribute == EXS_QATTR_SIGNAL) {
    if (len != sizeof(exs_signal_t)) return Failed(EINVAL);
    return Failed(ModifySignal(queue, *static_cast<const exs_signal_t*>(value)));
  }
  if (len != sizeof(int)) return Failed(EINVAL);
  return Failed(ModifyNumber(queue, attribute, *static_cast<const int*>(value)));
}

template <typename T>
Answer Give(const T& what, void* value, size_t* len) {
  if (*len < sizeof(T)) return Failed(EINVAL);
  *static_cast<T*>(value) = what;
  *len = sizeof(T);
  return Value(0);
}

Answer Status(Queue& queue, int attribute, void* value, size_t* len) {
  if (attribute < EXS_QATTR_DEPTH || attribute > EXS_QATTR_WAIT) return Failed(EINVAL);
  if (value == nullptr || len == nullptr) return Failed(EFAULT);
  if (attribute == EXS_QATTR_DEPTH) return Give(queue.depth(), value, len);
  if (attribute == EXS_QATTR_WAIT) return Give(queue.wait_mode(), value, len);
  if (attribute == EXS_QATTR_EVENTS) {
    queue.Look();
    return Give(queue.waiting(), value, len);
  }
  exs_signal_t signal{};
  bool enabled = false;
  queue.GetSignal(&signal.exs_sig_number, &enabled);
  signal.exs_sig_state = enabled ? EXS_SIG_ENABLE : EXS_SIG_DISABLE;
  return Give(signal, value, len);
}

Answer Register(Library& library, void* address, size_t len, int flags) {
  if ((flags & ~(EXS_MRF_SHARED | EXSX_MRF_READONLY)) != 0) return Failed(EINVAL);
  if (address == nullptr || len == 0) return Failed(EINVAL);
  const absl::Span<std::byte> memory(static_cast<std::byte*>(address), len);
  absl::StatusOr<Region> region = (flags & EXSX_MRF_READONLY) != 0
                                      ? library.context().RegisterReadOnly(memory)
                                      : library.context().Register(memory);
  if (!region.ok()) {
    const int error = ErrnoOf(region.status());
    return Failed(error == ENOBUFS ? ENOMEM : error);
  }
  const exs_mhandle_t handle = library.memory().Add(*std::move(region), address, len);
  return handle == EXS_MHANDLE_INVALID ? Failed(ENOMEM) : Value(handle);
}

}  // namespace
}  // namespace esdp::exs

extern "C" {

int exs_init(int version) {
  return esdp::exs::Initialise(version, esdp::exs::FabricOfEnvironment());
}

int exsx_init(int version, const char* fabric) { return esdp::exs::Initialise(version, fabric); }

exs_qhandle_t exs_qcreate(int depth) {
  return esdp::exs::Enter([&](esdp::exs::Library& library) {
    if (depth < 1 || depth > esdp::exs::kDepthMax) return esdp::exs::Failed(EINVAL);
    auto queue = esdp::exs::Queue::Open(library, depth);
    if (!queue.ok()) return esdp::exs::Failed(EMFILE);
    library.numbers().Add(*queue);
    return esdp::exs::Value((*queue)->number());
  });
}

int exs_qdelete(exs_qhandle_t queue) {
  return esdp::exs::EnterQueue(queue, [&](auto& library, auto& found) {
    const int error = found.Close();
    if (error == 0) library.numbers().RemoveQueue(queue);
    return esdp::exs::Failed(error);
  });
}

int exs_qdequeue(exs_qhandle_t queue, exs_event_t* events, int count, struct timeval* timeout) {
  return esdp::exs::EnterQueue(queue, [&](auto& library, auto& found) {
    return esdp::exs::Dequeue(library, found, events, count, timeout);
  });
}

int exs_qmodify(exs_qhandle_t queue, int attribute, const void* value, size_t len) {
  return esdp::exs::EnterQueue(
      queue, [&](auto&, auto& found) { return esdp::exs::Modify(found, attribute, value, len); });
}

int exs_qstatus(exs_qhandle_t queue, int attribute, void* value, size_t* len) {
  return esdp::exs::EnterQueue(
      queue, [&](auto&, auto& found) { return esdp::exs::Status(found, attribute, value, len); });
}

exs_mhandle_t exs_mregister(void* address, size_t len, int flags) {
  return esdp::exs::Enter(
      [&](auto& library) { return esdp::exs::Register(library, address, len, flags); });
}

int exs_mderegister(exs_mhandle_t memory) {
  return esdp::exs::Enter(
      [&](auto& library) { return esdp::exs::Failed(library.memory().Remove(memory)); });
}

}  // extern "C"
