#include "tests/golden/vectors.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>

namespace esdp::golden {
namespace {

template <typename T>
bool ParseNumber(std::string_view text, T& value) {
  int base = 10;
  if (text.starts_with("0x")) {
    text.remove_prefix(2);
    base = 16;
  }
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value, base);
  return !text.empty() && result.ec == std::errc() && result.ptr == end;
}

bool ParseHex(std::string_view text, std::vector<std::byte>& bytes) {
  if (text.size() % 2 != 0) return false;
  for (size_t i = 0; i < text.size(); i += 2) {
    uint8_t value = 0;
    const auto result = std::from_chars(text.data() + i, text.data() + i + 2, value, 16);
    if (result.ec != std::errc() || result.ptr != text.data() + i + 2) return false;
    bytes.push_back(std::byte{value});
  }
  return true;
}

// Splits at the first `mark`; the whole text and nothing where there is none.
std::pair<std::string_view, std::string_view> Split(std::string_view text, std::string_view mark) {
  const size_t at = text.find(mark);
  if (at == std::string_view::npos) return {text, {}};
  return {text.substr(0, at), text.substr(at + mark.size())};
}

uint64_t BigEndian(ConstBytes bytes) {
  uint64_t value = 0;
  for (const std::byte byte : bytes) value = value << 8 | std::to_integer<uint64_t>(byte);
  return value;
}

// "OFFSET+SIZE" or "OFFSET+1:HI-LO".
bool ParsePlace(std::string_view text, Field& field) {
  const auto [whole, bits] = Split(text, ":");
  const auto [offset, size] = Split(whole, "+");
  if (!ParseNumber(offset, field.offset) || !ParseNumber(size, field.size)) return false;
  if (bits.empty()) return field.size > 0;
  const auto [high, low] = Split(bits, "-");
  BitRange range;
  if (!ParseNumber(high, range.high) || !ParseNumber(low, range.low)) return false;
  field.bits = range;
  return field.size == 1 && range.high <= 7 && range.low <= range.high;
}

// The value as written: a number, 'zero', or 'hex:' and bytes.
bool ParseValue(std::string_view text, Field& field) {
  const auto [value, comment] = Split(text, " (");
  if (!comment.empty()) {
    if (!comment.ends_with(")")) return false;
    field.comment = comment.substr(0, comment.size() - 1);
  }
  if (value == "zero") {
    field.bytes.resize(field.size);
    return true;
  }
  if (value.starts_with("hex:")) return ParseHex(value.substr(4), field.bytes);
  uint64_t number = 0;
  if (!ParseNumber(value, number)) return false;
  field.number = number;
  return true;
}

// Holds what is written of a field against the vector's bytes, and takes its bytes from there.
bool AgreesWithBytes(const Vector& vector, Field& field) {
  if (field.offset + field.size > vector.bytes.size()) return false;
  const ConstBytes there = ConstBytes(vector.bytes).subspan(field.offset, field.size);
  if (field.bits) {
    const unsigned width = field.bits->high - field.bits->low + 1;
    const uint64_t value = BigEndian(there) >> field.bits->low & ((1u << width) - 1u);
    return field.number == value;
  }
  std::vector<std::byte> bytes(there.begin(), there.end());
  if (field.number) {
    if (field.size > 8 || BigEndian(there) != *field.number) return false;
    field.bytes = std::move(bytes);
    return true;
  }
  return field.bytes == bytes;
}

class Parser {
 public:
  std::optional<std::vector<Vector>> Run(std::string_view text, std::string& error) {
    while (!text.empty() && error_.empty()) {
      const auto [line, rest] = Split(text, "\n");
      ++line_;
      Line(line);
      text = rest;
    }
    if (error_.empty()) FinishVector();
    if (!error_.empty()) {
      error = "line " + std::to_string(line_) + ": " + error_;
      return std::nullopt;
    }
    return std::move(vectors_);
  }

 private:
  void Line(std::string_view line) {
    if (line.empty() || line.front() == '#') return;
    if (line.front() == '[') return BeginVector(line);
    if (vectors_.empty()) return Fail("stands before the first [ID]");
    const auto [key, value] = Split(line, " = ");
    if (value.empty()) return Fail("has no value");
    if (key.front() == '@') return FieldLine(key.substr(1), value);
    KeyLine(key, value);
  }

  void BeginVector(std::string_view line) {
    if (!vectors_.empty()) FinishVector();
    if (line.size() < 3 || line.back() != ']') return Fail("is no [ID]");
    vectors_.emplace_back().id = line.substr(1, line.size() - 2);
    length_ = 0;
    covered_ = 0;
  }

  void KeyLine(std::string_view key, std::string_view value) {
    Vector& vector = vectors_.back();
    if (key == "length") {
      if (!ParseNumber(value, length_)) Fail("is no length");
      return;
    }
    if (key == "hex" || key == "rebuilt") {
      if (!ParseHex(value, key == "hex" ? vector.bytes : vector.rebuilt)) Fail("is no hex");
      return;
    }
    const std::pair<std::string_view, std::string*> texts[] = {
        {"name", &vector.name},
        {"direction", &vector.direction},
        {"kind", &vector.kind},
        {"message", &vector.message},
        {"transport_src", &vector.transport_source},
        {"transport_dst", &vector.transport_destination},
        {"note", &vector.note},
    };
    for (const auto& [name, text] : texts) {
      if (key != name) continue;
      *text = value;
      return;
    }
    Fail("has an unknown key");
  }

  void FieldLine(std::string_view place_and_name, std::string_view value) {
    const auto [place, name] = Split(place_and_name, " ");
    Field field;
    field.name = name;
    if (name.empty() || !ParsePlace(place, field)) return Fail("has no place or no name");
    if (!ParseValue(value, field)) return Fail("has a value that cannot be read");
    if (!AgreesWithBytes(vectors_.back(), field)) return Fail("disagrees with the bytes");
    if (field.bits) {
      if (field.offset + 1 > covered_) return Fail("overlays no field");
    } else {
      if (field.offset != covered_) return Fail("leaves a gap or overlaps");
      covered_ += field.size;
    }
    vectors_.back().fields.push_back(std::move(field));
  }

  void FinishVector() {
    if (vectors_.empty()) return Fail("holds no vector");
    const Vector& vector = vectors_.back();
    if (vector.bytes.empty() || vector.bytes.size() != length_) {
      return Fail("[" + vector.id + "] does not have the length it states");
    }
    if (covered_ != length_) Fail("[" + vector.id + "] has bytes that no field covers");
  }

  void Fail(std::string why) {
    if (error_.empty()) error_ = std::move(why);
  }

  std::vector<Vector> vectors_;
  std::string error_;
  size_t line_ = 0;
  size_t length_ = 0;   // stated for the current vector
  size_t covered_ = 0;  // bytes of it that fields have covered
};

[[noreturn]] void Stop(const std::string& why) {
  std::fprintf(stderr, "golden vectors: %s\n", why.c_str());
  std::exit(1);
}

}  // namespace

std::string_view Vector::FieldAt(size_t offset) const {
  for (const Field& field : fields) {
    if (!field.bits && offset >= field.offset && offset < field.offset + field.size) {
      return field.name;
    }
  }
  return {};
}

bool Vector::HasNameAt(size_t offset, std::string_view field_name) const {
  for (const Field& field : fields) {
    const bool covers = offset >= field.offset && offset < field.offset + field.size;
    if (covers && field.name == field_name) return true;
  }
  return false;
}

const Field* Vector::Find(std::string_view field_name) const {
  for (const Field& field : fields) {
    if (field.name == field_name) return &field;
  }
  return nullptr;
}

std::optional<std::vector<Vector>> Parse(std::string_view text, std::string& error) {
  return Parser().Run(text, error);
}

std::vector<Vector> Load(const std::string& name, std::string_view kind) {
  const std::string path = "tests/golden/" + name;
  std::ifstream file(path, std::ios::binary);
  if (!file) Stop(path + " cannot be read");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::string error;
  std::optional<std::vector<Vector>> vectors = Parse(text, error);
  if (!vectors) Stop(path + ", " + error);
  if (!kind.empty()) std::erase_if(*vectors, [&](const Vector& v) { return v.kind != kind; });
  if (vectors->empty()) Stop(path + " has no vector of kind " + std::string(kind));
  return *std::move(vectors);
}

}  // namespace esdp::golden
