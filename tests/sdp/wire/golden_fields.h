#ifndef ESDP_TESTS_SDP_WIRE_GOLDEN_FIELDS_H_
#define ESDP_TESTS_SDP_WIRE_GOLDEN_FIELDS_H_

#include <string>

#include "impl/sdp/wire/codec.h"
#include "impl/sdp/wire/messages.h"
#include "tests/golden/vectors.h"

// Compares a decoded message with the fields of a golden vector. Written out by hand, name by name,
// so that it shares nothing with the field lists it is to test.

namespace esdp::sdp::wire {

// What is wrong with the message by this field, or "" when it holds what the vector says. A field
// whose name is not known here is an error.
std::string Difference(const Message& message, const golden::Vector& vector,
                       const golden::Field& field);

// The transport's addresses of a compact-hello vector.
TransportAddresses AddressesOf(const golden::Vector& vector);

}  // namespace esdp::sdp::wire

#endif  // ESDP_TESTS_SDP_WIRE_GOLDEN_FIELDS_H_
