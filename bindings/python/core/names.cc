#include "bindings/python/core/names.h"

#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "bindings/python/core/errors.h"

namespace py = pybind11;

namespace esdp::python {
namespace {

template <typename T>
using Word = std::pair<std::string_view, T>;

template <typename T, size_t N>
T Find(const std::array<Word<T>, N>& words, const char* what, std::string_view wanted) {
  for (const auto& [word, value] : words) {
    if (word == wanted) return value;
  }
  std::string known;
  for (const auto& [word, value] : words)
    known += (known.empty() ? "'" : ", '") + std::string(word) + "'";
  RaiseValueError(std::string(what) + " is '" + std::string(wanted) + "'; there are: " + known);
}

template <typename T, size_t N>
std::string_view WordIn(const std::array<Word<T>, N>& words, T wanted) {
  for (const auto& [word, value] : words) {
    if (value == wanted) return word;
  }
  return "unknown";
}

constexpr std::array<Word<Exposure>, 3> kExposures = {{
    {"per_operation", Exposure::kPerOperation},
    {"region_key", Exposure::kRegionKey},
    {"none", Exposure::kNone},
}};
constexpr std::array<Word<DeliveryMode>, 4> kModes = {{
    {"automatic", DeliveryMode::kAutomatic},
    {"buffered", DeliveryMode::kBuffered},
    {"combined", DeliveryMode::kCombined},
    {"pipelined", DeliveryMode::kPipelined},
}};
constexpr std::array<Word<DeadlinePolicy>, 2> kPolicies = {{
    {"finish", DeadlinePolicy::kFinish},
    {"abort_connection", DeadlinePolicy::kAbortConnection},
}};

}  // namespace

CompleteAt CompleteAtFrom(std::string_view word) {
  static constexpr std::array<Word<CompleteAt>, 2> kWords = {
      {{"reusable", CompleteAt::kReusable}, {"delivered", CompleteAt::kDelivered}}};
  return Find(kWords, "complete_at", word);
}

Path PathFrom(std::string_view word) {
  static constexpr std::array<Word<Path>, 3> kWords = {
      {{"threshold", Path::kByThreshold}, {"copy", Path::kCopy}, {"zero_copy", Path::kZeroCopy}}};
  return Find(kWords, "path", word);
}

CloseMode CloseModeFrom(std::string_view word) {
  static constexpr std::array<Word<CloseMode>, 2> kWords = {
      {{"graceful", CloseMode::kGraceful}, {"abort", CloseMode::kAbort}}};
  return Find(kWords, "mode", word);
}

Direction DirectionFrom(std::string_view word) {
  static constexpr std::array<Word<Direction>, 3> kWords = {
      {{"send", Direction::kSend}, {"receive", Direction::kReceive}, {"both", Direction::kBoth}}};
  return Find(kWords, "direction", word);
}

Family FamilyFrom(std::string_view word) {
  static constexpr std::array<Word<Family>, 2> kWords = {
      {{"ipv4", Family::kIpv4}, {"ipv6", Family::kIpv6}}};
  return Find(kWords, "family", word);
}

Exposure ExposureFrom(std::string_view word) { return Find(kExposures, "exposure", word); }

Progress ProgressFrom(std::string_view word) {
  static constexpr std::array<Word<Progress>, 2> kWords = {
      {{"thread", Progress::kThread}, {"manual", Progress::kManual}}};
  return Find(kWords, "progress", word);
}

WaitMode WaitModeFrom(std::string_view word) {
  static constexpr std::array<Word<WaitMode>, 3> kWords = {{{"adaptive", WaitMode::kAdaptive},
                                                            {"notify", WaitMode::kNotify},
                                                            {"busy_poll", WaitMode::kBusyPoll}}};
  return Find(kWords, "wait", word);
}

PeerMoves PeerMovesFrom(std::string_view word) {
  static constexpr std::array<Word<PeerMoves>, 3> kWords = {{{"refused", PeerMoves::kRefused},
                                                             {"guarded", PeerMoves::kGuarded},
                                                             {"unguarded", PeerMoves::kUnguarded}}};
  return Find(kWords, "peer_moves", word);
}

LocalShare LocalShareFrom(std::string_view word) {
  static constexpr std::array<Word<LocalShare>, 3> kWords = {{{"proved", LocalShare::kProved},
                                                              {"user", LocalShare::kUser},
                                                              {"never", LocalShare::kNever}}};
  return Find(kWords, "local_share", word);
}

Shareable ShareableFrom(std::string_view word) {
  static constexpr std::array<Word<Shareable>, 3> kWords = {
      {{"auto", Shareable::kAuto}, {"never", Shareable::kNever}, {"always", Shareable::kAlways}}};
  return Find(kWords, "shareable", word);
}
DeliveryMode DeliveryModeFrom(std::string_view word) { return Find(kModes, "mode", word); }

DeadlinePolicy DeadlinePolicyFrom(std::string_view word) {
  return Find(kPolicies, "deadline_policy", word);
}

FileStrategy FileStrategyFrom(std::string_view word) {
  static constexpr std::array<Word<FileStrategy>, 5> kWords = {
      {{"pipelined", FileStrategy::kPipelined},
       {"plain", FileStrategy::kPlain},
       {"direct", FileStrategy::kDirect},
       {"mapped", FileStrategy::kMapped},
       {"spliced", FileStrategy::kSpliced}}};
  return Find(kWords, "strategy", word);
}

OnShortFile OnShortFileFrom(std::string_view word) {
  static constexpr std::array<Word<OnShortFile>, 2> kWords = {
      {{"abort", OnShortFile::kAbort}, {"stop", OnShortFile::kStop}}};
  return Find(kWords, "on_short", word);
}

SyncPolicy SyncPolicyFrom(std::string_view word) {
  static constexpr std::array<Word<SyncPolicy>, 3> kWords = {
      {{"none", SyncPolicy::kNone}, {"end", SyncPolicy::kEnd}, {"every", SyncPolicy::kEvery}}};
  return Find(kWords, "sync", word);
}

std::string_view WordOf(Exposure exposure) { return WordIn(kExposures, exposure); }
std::string_view WordOf(DeliveryMode mode) { return WordIn(kModes, mode); }
std::string_view WordOf(DeadlinePolicy policy) { return WordIn(kPolicies, policy); }

Address AddressFrom(py::handle address) {
  if (py::isinstance<py::str>(address))
    return Value(Address::Parse(Cast<std::string>(address, "an address is a str")));
  if (!py::isinstance<py::tuple>(address) || py::len(address) < 2) {
    RaiseTypeError("an address is a str such as '192.0.2.1:5001' or a tuple (host, port)");
  }
  const auto parts = py::reinterpret_borrow<py::tuple>(address);
  const auto host = Cast<std::string>(parts[0], "a host is a str");
  const auto port = Cast<int64_t>(parts[1], "a port is an int from 0 to 65535");
  if (port < 0 || port > 65535) {
    RaiseValueError("a port is 0 to 65535, not " + std::to_string(port));
  }
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return Value(Address::Parse((is_ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port)));
}

py::tuple TupleOf(const Address& address) {
  std::string host = address.ToString();
  host.resize(host.rfind(':'));
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  return py::make_tuple(host, address.port());
}

absl::Duration DurationFrom(double seconds) {
  if (std::isnan(seconds) || seconds < 0) RaiseValueError("a time must not be negative");
  return absl::Seconds(seconds);
}

absl::Time DeadlineAfter(absl::Time now, std::optional<double> seconds) {
  return seconds.has_value() ? now + DurationFrom(*seconds) : absl::InfiniteFuture();
}

}  // namespace esdp::python
