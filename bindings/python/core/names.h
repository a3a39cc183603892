#ifndef ESDP_BINDINGS_PYTHON_CORE_NAMES_H_
#define ESDP_BINDINGS_PYTHON_CORE_NAMES_H_

#include <pybind11/pybind11.h>

#include <optional>
#include <string_view>

#include "absl/time/time.h"
#include "esdp/address.h"
#include "esdp/event.h"
#include "esdp/file.h"
#include "esdp/options.h"
#include "esdp/region.h"
#include "esdp/socket.h"

// Values that Python writes in another way: words for enumerations, tuples for addresses, seconds
// for durations.
//
//   Owns:     nothing.
//   Threads:  with the interpreter lock held.
//   Blocks:   never.
//   Units:    seconds as float; None: without end.
//   Errors:   ValueError, with the words that are accepted; TypeError.

namespace esdp::python {

CompleteAt CompleteAtFrom(std::string_view word);
Path PathFrom(std::string_view word);
CloseMode CloseModeFrom(std::string_view word);
Direction DirectionFrom(std::string_view word);
Family FamilyFrom(std::string_view word);
Exposure ExposureFrom(std::string_view word);
Progress ProgressFrom(std::string_view word);
WaitMode WaitModeFrom(std::string_view word);
DeliveryMode DeliveryModeFrom(std::string_view word);
PeerMoves PeerMovesFrom(std::string_view word);
LocalShare LocalShareFrom(std::string_view word);
Shareable ShareableFrom(std::string_view word);
DeadlinePolicy DeadlinePolicyFrom(std::string_view word);
FileStrategy FileStrategyFrom(std::string_view word);
OnShortFile OnShortFileFrom(std::string_view word);
SyncPolicy SyncPolicyFrom(std::string_view word);
std::string_view WordOf(Exposure exposure);
std::string_view WordOf(DeliveryMode mode);
std::string_view WordOf(DeadlinePolicy policy);

// "192.0.2.1:5001", or ("192.0.2.1", 5001) as the module socket has it.
Address AddressFrom(pybind11::handle address);
pybind11::tuple TupleOf(const Address& address);

// ValueError for a negative number or none. Infinity: without end.
absl::Duration DurationFrom(double seconds);
absl::Time DeadlineAfter(absl::Time now, std::optional<double> seconds);

}  // namespace esdp::python

#endif  // ESDP_BINDINGS_PYTHON_CORE_NAMES_H_
