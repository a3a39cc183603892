#ifndef ESDP_TESTS_GOLDEN_VECTORS_H_
#define ESDP_TESTS_GOLDEN_VECTORS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "impl/base/bytes.h"

// Golden bytes with every field written out, as the head of sdp.vec describes the format. For tests
// of anything that reads or writes wire bytes; knows nothing of any decoder.

namespace esdp::golden {

// A range of bits within the byte at a field's offset; 7 is the most significant.
struct BitRange {
  unsigned high = 7;
  unsigned low = 0;
};

struct Field {
  std::string name;
  size_t offset = 0;
  size_t size = 0;                 // bytes
  std::optional<BitRange> bits;    // set for one that overlays the field before it
  std::optional<uint64_t> number;  // unset for 'zero' and 'hex:' values
  std::vector<std::byte> bytes;    // of a whole field: what the wire holds
  std::string comment;             // text in parentheses behind the value
};

struct Vector {
  std::string id;
  std::string name;
  std::string direction;
  std::string kind;     // sdp-message, req-private-data, service-id, compact-hello, mpa-frame
  std::string message;  // of an sdp-message
  std::string transport_source;
  std::string transport_destination;
  std::string note;
  std::vector<std::byte> rebuilt;  // the full Hello that a compact one stands for; else empty
  std::vector<std::byte> bytes;
  std::vector<Field> fields;

  // The field that covers this byte, or "" behind the last.
  std::string_view FieldAt(size_t offset) const;
  // Whether a field or bit range at this byte has this name.
  bool HasNameAt(size_t offset, std::string_view field_name) const;
  const Field* Find(std::string_view field_name) const;
};

// The vectors of a text, or nothing and a message with the line number in `error`. A text that
// parses is consistent: length, value of each field and of each bit range agree with the bytes, and
// the fields cover them without gap.
std::optional<std::vector<Vector>> Parse(std::string_view text, std::string& error);

// The vectors of tests/golden/<name>, found in a test's runfiles or from the root of the
// repository; of one kind only when `kind` is given. A file that is missing, malformed or without
// such a vector ends the test program with a reason.
std::vector<Vector> Load(const std::string& name, std::string_view kind = {});

}  // namespace esdp::golden

#endif  // ESDP_TESTS_GOLDEN_VECTORS_H_
