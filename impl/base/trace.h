#ifndef ESDP_IMPL_BASE_TRACE_H_
#define ESDP_IMPL_BASE_TRACE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "impl/base/ring.h"
#include "impl/base/time.h"

namespace esdp {

struct TraceField {
  const char* name;
  uint64_t value;
};

// A Trace keeps the last things that happened, so that whoever asks why something ended sees what led
// there. A record is a few words; it becomes text only when somebody wants to read it.
//
//   Owns:     its records, not the names in them: those must be string literals.
//   Threads:  not thread-safe.
//   Blocks:   never; allocates at construction, and in Text.
//   Units:    records_max counts records; 0 switches the trace off.
//   Errors:   the oldest record makes room for the newest; fields beyond kFieldsMax are left out.
class Trace {
 public:
  static constexpr size_t kFieldsMax = 4;

  explicit Trace(size_t records_max) : records_(records_max) {}

  void Add(Time now, const char* verb, const char* subject,
           std::initializer_list<TraceField> fields = {});

  // One line for each record, the oldest first: "12.000345678 received Data mseq=5 bufs=3".
  std::string Text() const;

 private:
  struct Record {
    Time time{};
    const char* verb = "";
    const char* subject = "";
    std::array<TraceField, kFieldsMax> fields{};
    size_t fields_used = 0;
  };

  static std::string Line(const Record& record);

  Ring<Record> records_;
};

}  // namespace esdp

#endif  // ESDP_IMPL_BASE_TRACE_H_
