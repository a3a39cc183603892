#include "impl/base/trace.h"

#include <algorithm>
#include <chrono>

namespace esdp {

void Trace::Add(Time now, const char* verb, const char* subject,
                std::initializer_list<TraceField> fields) {
  if (records_.capacity() == 0) return;
  if (records_.full()) records_.PopFront();
  Record record{now, verb, subject, {}, std::min(fields.size(), kFieldsMax)};
  std::copy_n(fields.begin(), record.fields_used, record.fields.begin());
  static_cast<void>(records_.PushBack(record));  // room was made above
}

std::string Trace::Text() const {
  std::string text;
  for (const Record& record : records_) text += Line(record);
  return text;
}

std::string Trace::Line(const Record& record) {
  const Duration since = record.time.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  const std::string nanoseconds = std::to_string((since - seconds).count());
  std::string line = std::to_string(seconds.count()) + '.' +
                     std::string(9 - nanoseconds.size(), '0') + nanoseconds + ' ' + record.verb +
                     ' ' + record.subject;
  for (size_t i = 0; i < record.fields_used; ++i) {
    const TraceField& field = record.fields[i];
    line += std::string(" ") + field.name + '=' + std::to_string(field.value);
  }
  return line + '\n';
}

}  // namespace esdp
