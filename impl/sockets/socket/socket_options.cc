#include <algorithm>
#include <string>
#include <utility>

#include "impl/sockets/context/context_state.h"
#include "impl/sockets/convert.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/socket/socket_state.h"

// Options: what they may be, and what they are.

namespace esdp::sockets {
namespace {

struct Bounds {
  const char* name;
  uint64_t min;
  uint64_t max;
};

constexpr Bounds kReceiveBuffersBounds{"receive_buffers", 3, 1024};
constexpr Bounds kReceiveBufferBytesBounds{"receive_buffer_bytes", 1024, 1u << 20};
constexpr Bounds kReceiveBufferBytesMaxBounds{"receive_buffer_bytes_max", 0, 1u << 20};
constexpr Bounds kPeerReceiveBufferBytesBounds{"peer_receive_buffer_bytes", 1024, 1u << 20};
constexpr Bounds kReceiveWindowMaxBounds{"receive_window_max", 0, 1u << 30};
constexpr Bounds kSendBuffersBounds{"send_buffers", 1, 64};
constexpr Bounds kCoalesceMaxBounds{"coalesce_max", 0, 16 * 1024};  // one send buffer
constexpr Bounds kDeadlinePolicyBounds{"deadline_policy", 0, 1};
constexpr Bounds kAdaptiveThresholdBounds{"adaptive_threshold", 0, 1};
constexpr Bounds kAsDeployedBounds{"as_deployed", 0, 1};
constexpr absl::Duration kKeepAliveIdleMax = absl::Seconds(32767);  // what TCP takes
constexpr uint32_t kHeaderBytes = 16;  // of the message in a private buffer, beside its payload

absl::Status Check(const Bounds& bounds, uint64_t value) {
  if (value >= bounds.min && value <= bounds.max) return absl::OkStatus();
  return MakeError(ErrorKind::kInvalidArgument,
                   std::string(bounds.name) + " is " + std::to_string(value) + ": it must be " +
                       std::to_string(bounds.min) + " to " + std::to_string(bounds.max));
}

absl::Status CheckPeerReceiveBufferBytes(uint64_t value) {
  const Bounds& bounds = kPeerReceiveBufferBytesBounds;
  if (value == 0 || value == kByFabric || (value >= bounds.min && value <= bounds.max)) {
    return absl::OkStatus();
  }
  return MakeError(ErrorKind::kInvalidArgument,
                   std::string(bounds.name) + " is " + std::to_string(value) + ": it must be " +
                       std::to_string(bounds.min) + " to " + std::to_string(bounds.max) +
                       ", kByFabric, or 0 to leave the peer's buffers as they are");
}

static_assert(kByFabric == provider::kByFabric);
uint32_t ToPeerBufferBytes(uint32_t payload) {
  return payload == 0 || payload == kByFabric ? payload : payload + kHeaderBytes;
}

absl::Status CheckDuration(const char* name, absl::Duration value) {
  if (value > absl::ZeroDuration()) return absl::OkStatus();
  return MakeError(ErrorKind::kInvalidArgument,
                   std::string(name) + " must be longer than 0; InfiniteDuration is for ever");
}

absl::Status CheckSendMode(uint64_t mode) {
  if (mode <= static_cast<uint64_t>(DeliveryMode::kPipelined)) return absl::OkStatus();
  return MakeError(ErrorKind::kInvalidArgument,
                   "send_mode is " + std::to_string(mode) + ": it must be a DeliveryMode");
}

absl::Status CheckReceiveMode(uint64_t mode) {
  if (mode <= static_cast<uint64_t>(DeliveryMode::kBuffered)) return absl::OkStatus();
  return MakeError(ErrorKind::kInvalidArgument,
                   "receive_mode must be kAutomatic or kBuffered: between the others the sender "
                   "chooses, by its send_mode");
}

bool IsMode(OptionName name) {
  return name == OptionName::kSendMode || name == OptionName::kReceiveMode;
}

provider::ModeWish ToProvider(std::optional<DeliveryMode> mode) {
  return static_cast<provider::ModeWish>(mode.value_or(DeliveryMode::kAutomatic));
}
static_assert(static_cast<int>(provider::ModeWish::kPipelined) ==
              static_cast<int>(DeliveryMode::kPipelined));

bool IsDuration(OptionName name) {
  return name == OptionName::kLinger || name == OptionName::kCancelGrace ||
         name == OptionName::kKeepAliveIdle;
}

// Writes a value whose type fits the name into a set of options.
absl::Status Apply(const Option& option, SocketOptions& options) {
  const auto number = [&] { return std::get<uint64_t>(option.value); };
  const auto duration = [&] { return std::get<absl::Duration>(option.value); };
  switch (option.name) {
    case OptionName::kZcopySendMin:
      options.zcopy_send_min = number();
      return absl::OkStatus();
    case OptionName::kZcopyRecvMin:
      options.zcopy_recv_min = number();
      return absl::OkStatus();
    case OptionName::kSendMode:
      options.send_mode = static_cast<DeliveryMode>(number());
      return CheckSendMode(number());
    case OptionName::kReceiveMode:
      options.receive_mode = static_cast<DeliveryMode>(number());
      return CheckReceiveMode(number());
    case OptionName::kAdaptiveThreshold:
      options.adaptive_threshold = number() == 1;
      return Check(kAdaptiveThresholdBounds, number());
    case OptionName::kAsDeployed:
      options.as_deployed = number() == 1;
      return Check(kAsDeployedBounds, number());
    case OptionName::kReceiveBuffers:
      options.receive_buffers = static_cast<uint16_t>(number());
      return Check(kReceiveBuffersBounds, number());
    case OptionName::kReceiveBufferBytes:
      options.receive_buffer_bytes = static_cast<uint32_t>(number());
      return Check(kReceiveBufferBytesBounds, number());
    case OptionName::kReceiveBufferBytesMax:
      options.receive_buffer_bytes_max = static_cast<uint32_t>(number());
      return Check(kReceiveBufferBytesMaxBounds, number());
    case OptionName::kReceiveWindowMax:
      options.receive_window_max = static_cast<uint32_t>(number());
      return Check(kReceiveWindowMaxBounds, number());
    case OptionName::kPeerReceiveBufferBytes:
      options.peer_receive_buffer_bytes = static_cast<uint32_t>(number());
      return CheckPeerReceiveBufferBytes(number());
    case OptionName::kSendBuffers:
      options.send_buffers = static_cast<uint16_t>(number());
      return Check(kSendBuffersBounds, number());
    case OptionName::kCoalesceMax:
      options.coalesce_max = static_cast<uint32_t>(number());
      return Check(kCoalesceMaxBounds, number());
    case OptionName::kLinger:
      options.linger = duration();
      return CheckDuration("linger", duration());
    case OptionName::kCancelGrace:
      options.cancel_grace = duration();
      return CheckDuration("cancel_grace", duration());
    case OptionName::kKeepAliveIdle:
      options.keep_alive_idle = SocketState::WholeSeconds(duration());
      return CheckDuration("keep_alive_idle", duration());
    case OptionName::kDeadlinePolicy:
      options.deadline_policy = static_cast<DeadlinePolicy>(number());
      return Check(kDeadlinePolicyBounds, number());
  }
  return MakeError(ErrorKind::kInvalidArgument, "no such option");
}

}  // namespace

absl::Status SocketState::CheckOptions(const SocketOptions& options) {
  for (const auto& [bounds, value] : {
           std::pair<Bounds, uint64_t>{kReceiveBuffersBounds, options.receive_buffers},
           {kReceiveWindowMaxBounds, options.receive_window_max},
           {kReceiveBufferBytesBounds, options.receive_buffer_bytes},
           {kReceiveBufferBytesMaxBounds, options.receive_buffer_bytes_max},
           {kSendBuffersBounds, options.send_buffers},
           {kCoalesceMaxBounds, options.coalesce_max},
           {kDeadlinePolicyBounds, static_cast<uint64_t>(options.deadline_policy)},
       }) {
    if (absl::Status status = Check(bounds, value); !status.ok()) return status;
  }
  if (absl::Status status = CheckPeerReceiveBufferBytes(options.peer_receive_buffer_bytes);
      !status.ok()) {
    return status;
  }
  const auto send_mode = options.send_mode.value_or(DeliveryMode::kAutomatic);
  if (absl::Status status = CheckSendMode(static_cast<uint64_t>(send_mode)); !status.ok()) {
    return status;
  }
  const auto receive_mode = options.receive_mode.value_or(DeliveryMode::kAutomatic);
  if (absl::Status status = CheckReceiveMode(static_cast<uint64_t>(receive_mode)); !status.ok()) {
    return status;
  }
  if (absl::Status status = CheckDuration("linger", options.linger); !status.ok()) return status;
  const absl::Duration grace = options.cancel_grace.value_or(absl::InfiniteDuration());
  if (absl::Status status = CheckDuration("cancel_grace", grace); !status.ok()) return status;
  return CheckDuration("keep_alive_idle", options.keep_alive_idle);
}

absl::Duration SocketState::WholeSeconds(absl::Duration idle) {
  return std::min(absl::Ceil(idle, absl::Seconds(1)), kKeepAliveIdleMax);
}

absl::Status SocketState::SetMode(const Option& option) {
  const std::lock_guard order(modes_mutex_);
  SocketOptions changed;
  {
    const std::lock_guard lock(mutex_);
    changed = options_;
    if (absl::Status status = Apply(option, changed); !status.ok()) return status;
    if (role_ != Role::kNone && !stream_.connected()) {
      return MakeError(ErrorKind::kWrongState,
                       "a delivery mode is set before Connect or Listen, or while connected");
    }
    options_ = changed;
    if (role_ == Role::kNone) return absl::OkStatus();
  }
  stream_.SubmitModes(ToProvider(changed.send_mode), ToProvider(changed.receive_mode));
  return absl::OkStatus();
}

absl::Status SocketState::SetOption(const Option& option) {
  const ContextCall call(context_.get());
  if (!call.ok()) return call.status();
  if (IsDuration(option.name) != std::holds_alternative<absl::Duration>(option.value)) {
    return MakeError(ErrorKind::kInvalidArgument, IsDuration(option.name)
                                                      ? "this option takes an absl::Duration"
                                                      : "this option takes a uint64_t");
  }
  if (IsMode(option.name)) return SetMode(option);
  const std::lock_guard lock(mutex_);
  SocketOptions changed = options_;
  if (absl::Status status = Apply(option, changed); !status.ok()) return status;
  const bool any_time = option.name == OptionName::kZcopySendMin ||
                        option.name == OptionName::kZcopyRecvMin ||
                        option.name == OptionName::kAdaptiveThreshold;
  if (!any_time && role_ != Role::kNone) {
    return MakeError(ErrorKind::kWrongState, "this option is fixed by Connect and Listen");
  }
  options_ = changed;
  stream_.SetOptions(options_);
  return absl::OkStatus();
}

absl::StatusOr<Option> SocketState::GetOption(OptionName name) const {
  const std::lock_guard lock(mutex_);
  switch (name) {
    case OptionName::kZcopySendMin:
      return Option{name, options_.zcopy_send_min.value_or(context_->options().zcopy_send_min)};
    case OptionName::kZcopyRecvMin:
      return Option{name, *options_.zcopy_recv_min};
    case OptionName::kSendMode:
      return Option{name, static_cast<uint64_t>(*options_.send_mode)};
    case OptionName::kReceiveMode:
      return Option{name, static_cast<uint64_t>(*options_.receive_mode)};
    case OptionName::kAdaptiveThreshold:
      return Option{name, uint64_t{*options_.adaptive_threshold}};
    case OptionName::kAsDeployed:
      return Option{name, uint64_t{*options_.as_deployed}};
    case OptionName::kReceiveBuffers:
      return Option{name, uint64_t{options_.receive_buffers}};
    case OptionName::kReceiveBufferBytes:
      return Option{name, uint64_t{options_.receive_buffer_bytes}};
    case OptionName::kReceiveBufferBytesMax:
      return Option{name, uint64_t{options_.receive_buffer_bytes_max}};
    case OptionName::kReceiveWindowMax:
      return Option{name, uint64_t{options_.receive_window_max}};
    case OptionName::kPeerReceiveBufferBytes:
      return Option{name, uint64_t{options_.peer_receive_buffer_bytes}};
    case OptionName::kSendBuffers:
      return Option{name, uint64_t{options_.send_buffers}};
    case OptionName::kCoalesceMax:
      return Option{name, uint64_t{options_.coalesce_max}};
    case OptionName::kLinger:
      return Option{name, options_.linger};
    case OptionName::kCancelGrace:
      return Option{name, *options_.cancel_grace};
    case OptionName::kKeepAliveIdle:
      return Option{name, options_.keep_alive_idle};
    case OptionName::kDeadlinePolicy:
      return Option{name, static_cast<uint64_t>(options_.deadline_policy)};
  }
  return MakeError(ErrorKind::kInvalidArgument, "no such option");
}

SocketOptions SocketState::OptionsInForce() const {
  const std::lock_guard lock(mutex_);
  return options_;
}

provider::ConnectionOptions SocketState::ToConnectionOptions() const {
  const std::lock_guard lock(mutex_);
  provider::ConnectionOptions options;
  options.receive_buffers = options_.receive_buffers;
  options.receive_buffer_bytes = options_.receive_buffer_bytes + kHeaderBytes;
  options.receive_buffer_bytes_max = options_.receive_buffer_bytes_max + kHeaderBytes;
  options.receive_window_bytes = options_.receive_window_max;
  options.peer_receive_buffer_bytes = ToPeerBufferBytes(options_.peer_receive_buffer_bytes);
  options.send_mode = ToProvider(options_.send_mode);
  options.receive_mode = ToProvider(options_.receive_mode);
  options.as_deployed = options_.as_deployed.value_or(false);
  options.send_buffers = options_.send_buffers;
  options.coalesce_max = options_.coalesce_max;
  options.checksum = context_->options().checksum;
  options.shows_receives = context_->options().show_receives;
  options.peer_moves = static_cast<provider::PeerMoves>(context_->options().peer_moves);
  options.moves_max = context_->options().moves_max;
  options.keep_alive_idle = ToDuration(options_.keep_alive_idle);
  options.linger = ToDuration(options_.linger);
  options.cancel_grace = ToDuration(*options_.cancel_grace);
  return options;
}

}  // namespace esdp::sockets
