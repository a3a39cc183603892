#include "impl/sdp/wire/codec.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>

#include "impl/base/bytes.h"
#include "impl/sdp/wire/fields.h"
#include "impl/sdp/wire/kinds.h"
#include "impl/sdp/wire/messages.h"

namespace esdp::sdp::wire {
namespace {

// The unsigned integer that carries a field on the wire.
template <typename T>
using Raw = std::conditional_t<sizeof(T) == 1, uint8_t, T>;

constexpr bool SharesItsByte(const Field& field) { return field.high != 7 || field.low != 0; }

constexpr unsigned BitMask(const Field& field) { return (1u << (field.high - field.low + 1)) - 1u; }

// Reads each field and holds it against its rule. The caller has checked that the whole header is
// there.
class Reader {
 public:
  explicit Reader(ConstBytes bytes) : bytes_(bytes) {}

  template <typename T>
  [[gnu::always_inline]] bool operator()(const Field& field, T& value) {
    Raw<T> raw = LoadBigEndian<Raw<T>>(bytes_, field.offset);
    if (SharesItsByte(field)) raw = static_cast<Raw<T>>((raw >> field.low) & BitMask(field));
    if (!Check(raw >= field.min && raw <= field.max, field.name, field.rule)) return false;
    value = static_cast<T>(raw);
    return true;
  }

  bool operator()(const Field& field, AddressBytes& value) {
    CopyBytes(std::as_writable_bytes(std::span(value)), bytes_.subspan(field.offset, value.size()));
    return true;
  }

  bool Reserved(const Field&, size_t) { return true; }

  bool Zero(const Field& field) {
    uint8_t ignored = 0;
    return (*this)(field, ignored);
  }

  [[gnu::always_inline]] bool Check(bool holds, const char* name, const char* rule) {
    if (holds) [[likely]]
      return true;
    error_ = {name, rule};
    return false;
  }

  const DecodeError& error() const { return error_; }

 private:
  ConstBytes bytes_;
  DecodeError error_;
};

// Writes each field. The bits of a shared byte come from high to low, so the first of them clears
// it.
class Writer {
 public:
  explicit Writer(Bytes bytes) : bytes_(bytes) {}

  template <typename T>
  [[gnu::always_inline]] bool operator()(const Field& field, const T& value) {
    Raw<T> raw = static_cast<Raw<T>>(value);
    if (SharesItsByte(field)) {
      raw = static_cast<Raw<T>>((raw & BitMask(field)) << field.low);
      if (field.high != 7) {
        raw = static_cast<Raw<T>>(raw | std::to_integer<uint8_t>(bytes_[field.offset]));
      }
    }
    StoreBigEndian(bytes_, field.offset, raw);
    return true;
  }

  bool operator()(const Field& field, const AddressBytes& value) {
    CopyBytes(bytes_.subspan(field.offset, value.size()), std::as_bytes(std::span(value)));
    return true;
  }

  [[gnu::always_inline]] bool Reserved(const Field& field, size_t bytes) {
    if (SharesItsByte(field)) return Zero(field);
    std::ranges::fill(bytes_.subspan(field.offset, bytes), std::byte{0});
    return true;
  }

  [[gnu::always_inline]] bool Zero(const Field& field) { return (*this)(field, uint8_t{0}); }

  bool Check(bool, const char*, const char*) { return true; }

 private:
  Bytes bytes_;
};

// Finds the field that a byte belongs to.
class FieldOfByte {
 public:
  explicit FieldOfByte(size_t byte) : byte_(byte) {}

  template <typename T>
  bool operator()(const Field& field, const T& value) {
    return Reserved(field, sizeof(value));
  }
  bool Reserved(const Field& field, size_t bytes) {
    if (byte_ >= field.offset + bytes) return true;
    name_ = field.name;
    return false;
  }
  bool Zero(const Field& field) { return Reserved(field, 1); }
  bool Check(bool, const char*, const char*) { return true; }

  const char* name() const { return name_; }

 private:
  size_t byte_;
  const char* name_ = "payload";
};

// Proves that a list covers its header: each field begins with the bit after the one before.
class Measure {
 public:
  template <typename T>
  constexpr bool operator()(const Field& field, const T& value) {
    return Reserved(field, sizeof(value));
  }
  constexpr bool Reserved(const Field& field, size_t bytes) {
    const size_t before_field = static_cast<size_t>(7 - field.high);
    if (bits_ != field.offset * 8 + before_field) return false;
    bits_ = (field.offset + bytes) * 8 - static_cast<size_t>(field.low);
    return true;
  }
  constexpr bool Zero(const Field& field) { return Reserved(field, 1); }
  constexpr bool Check(bool, const char*, const char*) { return true; }

  constexpr size_t bits() const { return bits_; }

 private:
  size_t bits_ = 0;
};

template <typename T>
constexpr bool ListCoversHeader() {
  Measure measure;
  const uint8_t id = 0;
  const BaseHeader base;
  const T body;
  return EachField(measure, id, base) && measure.bits() == kBaseHeaderBytes * 8 &&
         EachField(measure, body) && measure.bits() == Kind<T>::kHeaderBytes * 8;
}

#define ESDP_SDP_MESSAGE(Name, ...) static_assert(ListCoversHeader<Name>());
#include "impl/sdp/wire/messages.def"
#undef ESDP_SDP_MESSAGE

template <typename T>
const char* NameOfFieldAt(size_t byte) {
  FieldOfByte find(byte);
  const uint8_t id = 0;
  const BaseHeader base;
  const T body;
  if (EachField(find, id, base)) EachField(find, body);
  return find.name();
}

constexpr const char* kCutReason = "is missing or cut short: the message ends too early";

// [R3.10.2, R3.10.3, R3.10.4] Why `size` bytes cannot be one message of this kind.
template <typename T>
[[gnu::noinline, gnu::cold]] DecodeError SizeError(size_t size, size_t length) {
  if (size < Kind<T>::kHeaderBytes) return {NameOfFieldAt<T>(size), kCutReason};
  if (size > length) return {"bsdh.len", "is less than the bytes received"};
  if (size == length) {
    return {"bsdh.len", "is more than the header of a message that carries no payload"};
  }
  if (Kind<T>::kMayCarryPayload) return {"payload", kCutReason};
  return {"bsdh.len", "is more than the bytes received"};
}

template <typename T>
constexpr bool kOpensConnection = std::same_as<T, Hello> || std::same_as<T, HelloAck>;

// [R2.6.6, R3.3.1, R3.4.1] Fixed for the messages that set up a connection.
bool CheckOpening(Reader& read, const BaseHeader& base) {
  constexpr const char* kRule = "is not 0, as a Hello or HelloAck has it";
  return read.Check(base.flags == 0, "bsdh.flags", kRule) &&
         read.Check(base.sequence == 0, "bsdh.mseq", kRule) &&
         read.Check(base.acknowledged == 0, "bsdh.mseqack", kRule);
}

template <typename T>
std::optional<DecodeError> DecodeAs(ConstBytes bytes, Message& message) {
  constexpr size_t kHeader = Kind<T>::kHeaderBytes;
  const size_t length = LoadBigEndian<uint32_t>(bytes, 4);
  const bool fits = Kind<T>::kMayCarryPayload ? length >= kHeader : length == kHeader;
  if (length != bytes.size() || !fits) [[unlikely]]
    return SizeError<T>(bytes.size(), length);

  Reader read(bytes);
  uint8_t id = 0;
  T& body = message.body.template emplace<T>();
  if (!EachField(read, id, message.base)) return read.error();
  if constexpr (kOpensConnection<T>) {
    if (!CheckOpening(read, message.base)) return read.error();
  }
  if (!EachField(read, body)) return read.error();
  if constexpr (std::same_as<T, SrcAvail>) {
    // [R3.7.2, R7.1.10] The advert counts the inline bytes, and some must be left to read; none
    // inline is what Pipelined mode and the deployed peer send.
    if (!read.Check(length - kHeader < body.length, "srcah.len",
                    "is not more than the inline bytes")) {
      return read.error();
    }
  }
  return std::nullopt;
}

template <typename T>
size_t EncodeAs(const Message& message, size_t payload_bytes, Bytes out) {
  Writer write(out);
  const uint8_t id = static_cast<uint8_t>(Kind<T>::kId);
  BaseHeader base = message.base;
  base.length = static_cast<uint32_t>(Kind<T>::kHeaderBytes + payload_bytes);  // [R3.1.2]
  EachField(write, id, std::as_const(base));
  EachField(write, *std::get_if<T>(&message.body));
  return Kind<T>::kHeaderBytes;
}

template <typename Variant>
struct IdsOf;
template <typename... T>
struct IdsOf<std::variant<T...>> {
  static constexpr std::array<MessageId, sizeof...(T)> kIds{Kind<T>::kId...};
};

bool IsExperimental(MessageId id) {
  const uint8_t value = static_cast<uint8_t>(id);
  return value >= 0x40 && value <= 0x7F;
}

}  // namespace

MessageId IdOf(const Message& message) { return IdsOf<Body>::kIds[message.body.index()]; }

const char* NameOf(MessageId id) {
  switch (id) {
#define ESDP_SDP_MESSAGE(Name, ...) \
  case MessageId::k##Name:          \
    return #Name;
#include "impl/sdp/wire/messages.def"
#undef ESDP_SDP_MESSAGE
  }
  return IsExperimental(id) ? "experimental" : "reserved";
}

size_t HeaderBytes(MessageId id) {
  switch (id) {
#define ESDP_SDP_MESSAGE(Name, ...) \
  case MessageId::k##Name:          \
    return Kind<Name>::kHeaderBytes;
#include "impl/sdp/wire/messages.def"
#undef ESDP_SDP_MESSAGE
  }
  return 0;
}

bool MayCarryPayload(MessageId id) {
  switch (id) {
#define ESDP_SDP_MESSAGE(Name, ...) \
  case MessageId::k##Name:          \
    return Kind<Name>::kMayCarryPayload;
#include "impl/sdp/wire/messages.def"
#undef ESDP_SDP_MESSAGE
  }
  return false;
}

// [R16.1]
bool IsSolicited(const Message& message) {
  switch (IdOf(message)) {
#define ESDP_SDP_MESSAGE(Name, ...)     \
  case MessageId::k##Name:              \
    return Kind<Name>::kIsSolicited ||  \
           (std::same_as<Name, Data> && \
            (message.base.flags & (kFlagOobPresent | kFlagOobPending)) != 0);
#include "impl/sdp/wire/messages.def"
#undef ESDP_SDP_MESSAGE
  }
  return false;
}

std::optional<DecodeError> Decode(ConstBytes bytes, Message& message) {
  if (bytes.size() < kBaseHeaderBytes) {  // [R3.10.1]
    return DecodeError{NameOfFieldAt<Data>(bytes.size()), kCutReason};
  }
  const MessageId id{std::to_integer<uint8_t>(bytes[0])};
  switch (id) {
#define ESDP_SDP_MESSAGE(Name, ...) \
  case MessageId::k##Name:          \
    return DecodeAs<Name>(bytes, message);
#include "impl/sdp/wire/messages.def"
#undef ESDP_SDP_MESSAGE
  }
  if (IsExperimental(id)) {  // [R3.2.4]
    return DecodeError{"bsdh.mid", "is experimental, and none was agreed upon"};
  }
  return DecodeError{"bsdh.mid", "is a reserved message id"};  // [R3.2.3]
}

size_t Encode(const Message& message, size_t payload_bytes, Bytes out) {
  switch (IdOf(message)) {
#define ESDP_SDP_MESSAGE(Name, ...) \
  case MessageId::k##Name:          \
    return EncodeAs<Name>(message, payload_bytes, out);
#include "impl/sdp/wire/messages.def"
#undef ESDP_SDP_MESSAGE
  }
  return 0;
}

}  // namespace esdp::sdp::wire
