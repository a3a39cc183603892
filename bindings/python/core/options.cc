#include "bindings/python/core/options.h"

#include <pybind11/stl.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/time/time.h"
#include "bindings/python/core/errors.h"
#include "bindings/python/core/names.h"

namespace py = pybind11;

namespace esdp::python {
namespace {

template <typename T>
struct Inner {
  using Type = T;
  static constexpr bool kOptional = false;
};
template <typename T>
struct Inner<std::optional<T>> {
  using Type = T;
  static constexpr bool kOptional = true;
};

template <typename T>
constexpr const char* kExpected = std::is_same_v<T, bool>          ? "a bool"
                                  : std::is_same_v<T, std::string> ? "a str"
                                  : std::is_floating_point_v<T>    ? "a float (seconds)"
                                                                   : "an int";

template <typename T>
bool IsA(PyObject* value) {
  const bool number = PyIndex_Check(value) != 0 && PyBool_Check(value) == 0;
  if constexpr (std::is_same_v<T, bool>) return PyBool_Check(value) != 0;
  if constexpr (std::is_same_v<T, std::string>) return PyUnicode_Check(value) != 0;
  if constexpr (std::is_floating_point_v<T>) return number || PyFloat_Check(value) != 0;
  return number;
}

// Python's own type for a value, not whatever could be made into one: "no" is not a flag, nor True
// a number.
template <typename T>
T Typed(std::string_view name, py::handle value) {
  using Type = typename Inner<T>::Type;
  const bool none = Inner<T>::kOptional && value.is_none();
  if (!none && !IsA<Type>(value.ptr())) {
    RaiseTypeError(std::string(name) + " is " + kExpected<Type> + ", not " +
                   Py_TYPE(value.ptr())->tp_name);
  }
  try {
    return value.cast<T>();
  } catch (const py::cast_error&) {
    RaiseValueError(std::string(name) + " is out of range: " + py::repr(value).cast<std::string>());
  }
}

// Takes members out of keyword arguments; what is left at the end is no option.
class Members {
 public:
  explicit Members(const py::dict& arguments) : left_(arguments.attr("copy")()) {}

  template <typename T>
  void Take(const char* name, T& member) {
    if (const py::object value = Pop(name)) member = Typed<T>(name, value);
  }
  void Take(const char* name, absl::Duration& member) {
    if (const py::object value = Pop(name)) member = DurationFrom(Typed<double>(name, value));
  }
  void Take(const char* name, std::optional<absl::Duration>& member) {
    if (const py::object value = Pop(name)) member = DurationFrom(Typed<double>(name, value));
  }
  // A member that is written as a word.
  template <typename T, typename FromWord>
  void TakeWord(const char* name, T& member, FromWord from) {
    if (const py::object value = Pop(name)) member = from(Typed<std::string>(name, value));
  }
  void Finish(const char* what) const {
    if (left_.empty()) return;
    RaiseTypeError("'" + py::str(left_.begin()->first).cast<std::string>() + "' is no option of " +
                   what);
  }

 private:
  py::object Pop(const char* name) {
    if (!left_.contains(name)) return {};
    py::object value = left_[name];
    PyDict_DelItemString(left_.ptr(), name);
    return value;
  }

  py::dict left_;
};

enum class Form : uint8_t { kNumber, kFlag, kSeconds, kMode, kPolicy };

struct OptionInPython {
  std::string_view name;
  OptionName option;
  Form form;
};

constexpr std::array kOptions = {
    OptionInPython{"zcopy_send_min", OptionName::kZcopySendMin, Form::kNumber},
    OptionInPython{"zcopy_recv_min", OptionName::kZcopyRecvMin, Form::kNumber},
    OptionInPython{"adaptive_threshold", OptionName::kAdaptiveThreshold, Form::kFlag},
    OptionInPython{"send_mode", OptionName::kSendMode, Form::kMode},
    OptionInPython{"receive_mode", OptionName::kReceiveMode, Form::kMode},
    OptionInPython{"receive_buffers", OptionName::kReceiveBuffers, Form::kNumber},
    OptionInPython{"receive_buffer_bytes", OptionName::kReceiveBufferBytes, Form::kNumber},
    OptionInPython{"receive_buffer_bytes_max", OptionName::kReceiveBufferBytesMax, Form::kNumber},
    OptionInPython{"peer_receive_buffer_bytes", OptionName::kPeerReceiveBufferBytes, Form::kNumber},
    OptionInPython{"receive_window_max", OptionName::kReceiveWindowMax, Form::kNumber},
    OptionInPython{"send_buffers", OptionName::kSendBuffers, Form::kNumber},
    OptionInPython{"coalesce_max", OptionName::kCoalesceMax, Form::kNumber},
    OptionInPython{"linger", OptionName::kLinger, Form::kSeconds},
    OptionInPython{"cancel_grace", OptionName::kCancelGrace, Form::kSeconds},
    OptionInPython{"keep_alive_idle", OptionName::kKeepAliveIdle, Form::kSeconds},
    OptionInPython{"deadline_policy", OptionName::kDeadlinePolicy, Form::kPolicy},
    OptionInPython{"as_deployed", OptionName::kAsDeployed, Form::kFlag},
};

const OptionInPython& Find(std::string_view name) {
  for (const OptionInPython& named : kOptions) {
    if (named.name == name) return named;
  }
  RaiseValueError("'" + std::string(name) + "' is no option of a socket");
}

// What a Context says for the sockets that say nothing.
template <typename Options>
void TakeShared(Members& members, Options& options) {
  members.Take("zcopy_send_min", options.zcopy_send_min);
  members.Take("zcopy_recv_min", options.zcopy_recv_min);
  members.Take("adaptive_threshold", options.adaptive_threshold);
  members.TakeWord("send_mode", options.send_mode, DeliveryModeFrom);
  members.TakeWord("receive_mode", options.receive_mode, DeliveryModeFrom);
  members.Take("as_deployed", options.as_deployed);
  members.Take("cancel_grace", options.cancel_grace);
}

// They are options like all others there.
void TakeLimits(Members& members, ContextLimits& limits) {
  members.Take("connections_max", limits.connections_max);
  members.Take("connections_per_address_max", limits.connections_per_address_max);
  members.Take("accept_rate", limits.accept_rate);
  members.Take("accept_burst", limits.accept_burst);
  members.Take("spare_connections_max", limits.spare_connections_max);
  members.Take("file_pool_max", limits.file_pool_max);
  members.Take("file_threads", limits.file_threads);
}

Form FormOf(OptionName option) {
  for (const OptionInPython& named : kOptions) {
    if (named.option == option) return named.form;
  }
  return Form::kNumber;
}

}  // namespace

ContextOptions ContextOptionsFrom(const py::dict& arguments) {
  ContextOptions options;
  Members members(arguments);
  members.Take("fabric", options.fabric);
  members.TakeWord("progress", options.progress, ProgressFrom);
  members.Take("progress_cpu", options.progress_cpu);
  members.Take("progress_spin", options.progress_spin);
  TakeShared(members, options);
  members.Take("show_receives", options.show_receives);
  members.TakeWord("peer_moves", options.peer_moves, PeerMovesFrom);
  members.Take("moves_max", options.moves_max);
  members.Take("moves_at_once_max", options.moves_at_once_max);
  members.Take("half_open_max", options.half_open_max);
  members.Take("receive_growth_max", options.limits.receive_growth_max);
  TakeLimits(members, options.limits);
  members.Take("take_accepted_within", options.take_accepted_within);
  members.Take("log_burst", options.log_burst);
  members.Take("bounce_pool_bytes", options.bounce_pool_bytes);
  members.Take("operations_max", options.operations_max);
  members.Take("congestion_control", options.congestion_control);
  members.Take("checksum", options.checksum);
  members.Take("lend_pages", options.lend_pages);
  members.TakeWord("local_share", options.local_share, LocalShareFrom);
  members.Finish("a Context");
  return options;
}

SocketOptions SocketOptionsFrom(const py::dict& arguments) {
  SocketOptions options;
  Members members(arguments);
  TakeShared(members, options);
  members.Take("receive_buffers", options.receive_buffers);
  members.Take("receive_buffer_bytes", options.receive_buffer_bytes);
  members.Take("receive_buffer_bytes_max", options.receive_buffer_bytes_max);
  members.Take("peer_receive_buffer_bytes", options.peer_receive_buffer_bytes);
  members.Take("receive_window_max", options.receive_window_max);
  members.Take("send_buffers", options.send_buffers);
  members.Take("coalesce_max", options.coalesce_max);
  members.Take("linger", options.linger);
  members.Take("keep_alive_idle", options.keep_alive_idle);
  members.TakeWord("deadline_policy", options.deadline_policy, DeadlinePolicyFrom);
  members.Finish("a Socket");
  return options;
}

QueueOptions QueueOptionsFrom(const py::dict& arguments) {
  QueueOptions options;
  Members members(arguments);
  members.Take("depth", options.depth);
  members.TakeWord("wait", options.wait, WaitModeFrom);
  members.Take("spin", options.spin);
  members.Finish("an EventQueue");
  return options;
}

// A signal always ends a wait of the library: handlers are to run.
StreamOptions StreamOptionsFrom(const py::dict& arguments, const StreamOptions& before) {
  StreamOptions options = before;
  Members members(arguments);
  members.Take("zcopy_min", options.zcopy_min);
  members.Take("chunk_bytes", options.chunk_bytes);
  members.Take("chunks_max", options.chunks_max);
  members.Take("send_buffer_bytes", options.send_buffer_bytes);
  members.Take("patience", options.patience);
  members.Finish("a Stream");
  return options;
}

py::dict StreamOptionsAsDict(const StreamOptions& options) {
  py::dict all;
  all["zcopy_min"] = py::cast(options.zcopy_min);
  all["chunk_bytes"] = py::cast(options.chunk_bytes);
  all["chunks_max"] = py::cast(options.chunks_max);
  all["send_buffer_bytes"] = options.send_buffer_bytes;
  all["patience"] = absl::ToDoubleSeconds(options.patience);
  return all;
}

OptionName OptionNameFrom(const std::string& name) { return Find(name).option; }

Option OptionFrom(const std::string& name, py::handle value) {
  const OptionInPython& named = Find(name);
  switch (named.form) {
    case Form::kSeconds:
      return {named.option, DurationFrom(Typed<double>(name, value))};
    case Form::kFlag:
      return {named.option, uint64_t{Typed<bool>(name, value)}};
    case Form::kMode:
      return {named.option,
              static_cast<uint64_t>(DeliveryModeFrom(Typed<std::string>(name, value)))};
    case Form::kPolicy:
      return {named.option,
              static_cast<uint64_t>(DeadlinePolicyFrom(Typed<std::string>(name, value)))};
    case Form::kNumber:
      break;
  }
  return {named.option, Typed<uint64_t>(name, value)};
}

py::object ValueOf(const Option& option) {
  if (const auto* const duration = std::get_if<absl::Duration>(&option.value)) {
    return py::float_(absl::ToDoubleSeconds(*duration));
  }
  const uint64_t number = std::get<uint64_t>(option.value);
  switch (FormOf(option.name)) {
    case Form::kFlag:
      return py::bool_(number != 0);
    case Form::kMode:
      return py::cast(WordOf(static_cast<DeliveryMode>(number)));
    case Form::kPolicy:
      return py::cast(WordOf(static_cast<DeadlinePolicy>(number)));
    case Form::kNumber:
    case Form::kSeconds:
      break;
  }
  return py::int_(number);
}

}  // namespace esdp::python
