#include "tools/esdp_copy/wire.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace esdp_copy {
namespace {

// A record: 8 bytes of magic, a number of 8 bytes with the highest first, two bytes, and a text
// that ends with a zero.
constexpr std::string_view kRequestMagic = "esdpcpq1";
constexpr std::string_view kAnswerMagic = "esdpcpa1";
constexpr size_t kNumberAt = 8;
constexpr size_t kFlagsAt = 16;
constexpr size_t kTextAt = 18;
constexpr size_t kTextMax = kRecordBytes - kTextAt - 1;
constexpr size_t kNameMax = 250;  // and the ending of what is not whole yet
constexpr uint64_t kSizeMax = ~uint64_t{0} >> 1;

struct Fields {
  std::string_view magic;
  uint64_t number = 0;
  uint8_t first = 0;
  uint8_t second = 0;
  std::string text;
};

void Put(const Fields& fields, Record record) {
  std::fill(record.begin(), record.end(), std::byte{0});
  std::memcpy(record.data(), fields.magic.data(), fields.magic.size());
  for (size_t i = 0; i < 8; ++i) {
    record[kNumberAt + i] = static_cast<std::byte>(fields.number >> (56 - 8 * i));
  }
  record[kFlagsAt] = std::byte{fields.first};
  record[kFlagsAt + 1] = std::byte{fields.second};
  std::memcpy(&record[kTextAt], fields.text.data(), std::min(fields.text.size(), kTextMax));
}

std::optional<Fields> Take(Record record, std::string_view magic) {
  if (std::memcmp(record.data(), magic.data(), magic.size()) != 0) return std::nullopt;
  Fields fields{.magic = magic, .text = {}};
  for (size_t i = 0; i < 8; ++i) {
    fields.number = fields.number << 8 | std::to_integer<uint64_t>(record[kNumberAt + i]);
  }
  fields.first = std::to_integer<uint8_t>(record[kFlagsAt]);
  fields.second = std::to_integer<uint8_t>(record[kFlagsAt + 1]);
  const auto* const text = reinterpret_cast<const char*>(&record[kTextAt]);
  fields.text.assign(text, strnlen(text, kTextMax));
  return fields;
}

bool IsName(const std::string& name) {
  return !name.empty() && name.size() <= kNameMax && name != "." && name != ".." &&
         name.find('/') == std::string::npos;
}

}  // namespace

void Encode(const Request& request, Record record) {
  Put({kRequestMagic, request.size, request.resume, 0, request.name}, record);
}

void Encode(const Answer& answer, Record record) {
  Put({kAnswerMagic, answer.offset, static_cast<uint8_t>(answer.state), answer.again, answer.text},
      record);
}

std::optional<Request> DecodeRequest(Record record) {
  const auto fields = Take(record, kRequestMagic);
  if (!fields || !IsName(fields->text) || fields->number > kSizeMax) return std::nullopt;
  return Request{fields->text, fields->number, fields->first != 0};
}

std::optional<Answer> DecodeAnswer(Record record) {
  const auto fields = Take(record, kAnswerMagic);
  if (!fields || fields->first < 1 || fields->first > 3) return std::nullopt;
  return Answer{static_cast<Answer::State>(fields->first), fields->second != 0, fields->number,
                fields->text};
}

}  // namespace esdp_copy
