#ifndef ESDP_IMPL_SDP_WIRE_FIELDS_H_
#define ESDP_IMPL_SDP_WIRE_FIELDS_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "impl/sdp/wire/messages.h"

// One field list per message, in byte order. Reader, writer, printer, the search for a cut field
// and the proof that the list covers the header all walk it. Names are those of the golden vectors.

namespace esdp::sdp::wire {

enum class Look : uint8_t { kDecimal, kHex, kSecret, kFlags, kCapabilities, kIpVersion, kMode };

// A place and the values it may hold. Bit 7 is the most significant of its byte.
struct Field {
  const char* name;
  size_t offset;
  Look look = Look::kDecimal;
  int high = 7;  // high and low speak of a field that shares its byte with others
  int low = 0;
  uint64_t min = 0;
  uint64_t max = UINT64_MAX;
  const char* rule = "";  // why a value outside min..max is refused
};

constexpr Field Bits(const char* name, size_t offset, int high, int low,
                     Look look = Look::kDecimal) {
  return Field{name, offset, look, high, low};
}

constexpr Field Within(uint64_t min, uint64_t max, const char* rule, Field field) {
  field.min = min;
  field.max = max;
  field.rule = rule;
  return field;
}

constexpr Field Advertised(const char* name) {  // [R3.7.2, R3.8.2]
  return Within(1, kAdvertBytesMax, "is not between 1 and 2^31 bytes", Field{name, 16});
}

// [R3.5.1] Bytes of one advert: the text gives no lower bound, so 0 passes.
constexpr Field Moved(const char* name) {
  return Within(0, kAdvertBytesMax, "is more than any advert holds (2^31 bytes)", Field{name, 16});
}

constexpr Field BufferSize(const char* name, size_t offset) {  // [R2.8.5, R3.3.4]
  return Within(kReceiveBufferBytesMin, uint64_t{1} << 31, "is not between 37 and 2^31 bytes",
                Field{name, offset});
}

// [R11.1] Bounded from below only: a wish too large is answered with less.
constexpr Field NewBufferSize(const char* name) {
  return Within(kReceiveBufferBytesMin, UINT32_MAX, "is less than 37 bytes", Field{name, 16});
}

constexpr Field MaxAdverts(const char* name) {  // [R2.8.2]
  return Within(1, UINT8_MAX, "is 0: an end must hold one advert", Field{name, 19});
}

// A list is written once for a header that is read into (T&) and one that is written out (const
// T&).
template <typename H, typename... T>
concept IsOneOf = (std::same_as<std::remove_const_t<H>, T> || ...);

// A visitor offers four calls; each returns false to stop the walk.
//   operator()(Field, value&)   a field with a value.
//   Reserved(Field, bytes)      sent as zero, ignored on receive [R3.1.3].
//   Zero(Field)                 sent as zero, and refused on receive if it is not.
//   Check(holds, name, rule)    what a range cannot say of the fields up to here.

template <typename Visitor>
[[gnu::always_inline]] constexpr bool EachFieldAfterId(Visitor& visit,
                                                       IsOneOf<BaseHeader> auto& h) {  // [R3.1.1]
  return visit.Reserved(Bits("bsdh.flags", 1, 7, 3), 1) &&
         visit(Bits("bsdh.flags", 1, 2, 0, Look::kFlags), h.flags) &&
         visit(Field{"bsdh.bufs", 2}, h.buffers) && visit(Field{"bsdh.len", 4}, h.length) &&
         visit(Field{"bsdh.mseq", 8}, h.sequence) &&
         visit(Field{"bsdh.mseqack", 12}, h.acknowledged);
}

template <typename Visitor>
[[gnu::always_inline]] constexpr bool EachField(Visitor& visit, IsOneOf<uint8_t> auto& id,
                                                IsOneOf<BaseHeader> auto& h) {
  return visit(Field{"bsdh.mid", 0, Look::kHex}, id) && EachFieldAfterId(visit, h);
}

template <typename Visitor>
[[gnu::always_inline]] constexpr bool EachField(
    Visitor&, IsOneOf<Data, SendSm, SrcAvailCancel, SinkAvailCancel, SinkCancelAck, SuspCommAck,
                      DisConn, AbortConn> auto&) {
  return true;
}

template <typename Visitor>
[[gnu::always_inline]] constexpr bool EachField(Visitor& visit, IsOneOf<SrcAvail> auto& h) {
  return visit(Advertised("srcah.len"), h.length) &&  // [R3.7.1, R3.7.3]
         visit(Field{"srcah.rkey", 20, Look::kHex}, h.remote_key) &&
         visit(Field{"srcah.va", 24, Look::kHex}, h.virtual_address);
}

template <typename Visitor>
[[gnu::always_inline]] constexpr bool EachField(Visitor& visit, IsOneOf<SinkAvail> auto& h) {
  return visit(Advertised("sinkah.len"), h.length) &&  // [R3.8.1]
         visit(Field{"sinkah.rkey", 20, Look::kHex}, h.remote_key) &&
         visit(Field{"sinkah.va", 24, Look::kHex}, h.virtual_address) &&
         visit(Field{"sinkah.non_discards", 32}, h.non_discards);
}

template <typename Visitor>
[[gnu::always_inline]] constexpr bool EachField(Visitor& visit, IsOneOf<RdmaRdCompl> auto& h) {
  return visit(Moved("rrch.len"), h.length);
}

template <typename Visitor>
[[gnu::always_inline]] constexpr bool EachField(Visitor& visit, IsOneOf<RdmaWrCompl> auto& h) {
  return visit(Moved("rwch.len"), h.length);
}

// [R3.6.1, R5.3] Of the first byte only 0x00, 0x10, 0x20 and 0x90 are legal.
template <typename Visitor>
[[gnu::always_inline]] constexpr bool EachField(Visitor& visit, IsOneOf<ModeChange> auto& h) {
  return visit(Bits("mch.s", 16, 7, 7), h.changes_send_half) &&
         visit(Within(0, 2, "is a reserved mode", Bits("mch.mode", 16, 6, 4, Look::kMode)),
               h.mode) &&
         visit.Check(!h.changes_send_half || h.mode == Mode::kCombined, "mch.s_mode",
                     "is no legal change") &&
         visit.Zero(Within(0, 0, "is no legal change", Bits("mch.s_mode", 16, 3, 0))) &&
         visit.Reserved(Field{"mch.reserved17", 17}, 3);
}

template <typename Visitor>
[[gnu::always_inline]] constexpr bool EachField(Visitor& visit, IsOneOf<ChRcvBuf> auto& h) {
  return visit(NewBufferSize("crbh.des_sz"), h.desired_size);
}

template <typename Visitor>
[[gnu::always_inline]] constexpr bool EachField(Visitor& visit, IsOneOf<ChRcvBufAck> auto& h) {
  return visit(NewBufferSize("crbah.act_sz"), h.actual_size);
}

// [R3.9.1] Every value is taken: only the low 16 bits, the port, mean anything to the receiver.
template <typename Visitor>
[[gnu::always_inline]] constexpr bool EachField(Visitor& visit, IsOneOf<SuspComm> auto& h) {
  return visit(Field{"suspch.service_id", 16, Look::kHex}, h.service_id);
}

template <typename Visitor>
constexpr bool IfCapable(Visitor& visit, auto& h, uint8_t capability, const Field& f, auto& value) {
  return (h.capabilities & capability) != 0 ? visit(f, value) : visit.Reserved(f, sizeof(value));
}

// [R2.8.3, R3.3.1, R3.3.6] The version is judged when a connection is made, not here: any end may
// print what an old peer said.
template <typename Visitor>
[[gnu::always_inline]] constexpr bool EachField(Visitor& visit, IsOneOf<Hello> auto& h) {
  return visit(Bits("hh.majv", 16, 7, 4), h.major_version) &&
         visit(Bits("hh.minv", 16, 3, 0), h.minor_version) &&
         visit(Bits("hh.ipv", 17, 7, 4, Look::kIpVersion), h.ip_version) &&
         visit.Check(h.ip_version == 4 || h.ip_version == 6, "hh.ipv", "is neither 4 nor 6") &&
         visit(Bits("hh.cap", 17, 3, 0, Look::kCapabilities), h.capabilities) &&
         visit.Reserved(Field{"hh.reserved18", 18}, 1) &&
         visit(MaxAdverts("hh.max_adverts"), h.max_adverts) &&
         visit(Within(0, uint64_t{1} << 31, "is more than 2^31 bytes",
                      Field{"hh.des_rem_rcv_sz", 20}),
               h.desired_remote_receive_size) &&
         visit(BufferSize("hh.local_rcv_sz", 24), h.local_receive_size) &&
         visit(Field{"hh.local_port", 28}, h.local_port) &&
         visit.Reserved(Field{"hh.reserved30", 30}, 2) &&
         visit(Field{"hh.src_addr", 32}, h.source_address) &&
         visit(Field{"hh.dst_addr", 48}, h.destination_address) &&
         visit.Reserved(Field{"hh.reserved64", 64}, 2) &&
         IfCapable(visit, h, kCapabilityExtendedMaxAdverts, Field{"hh.ext_max_adverts", 66},
                   h.extended_max_adverts) &&
         IfCapable(visit, h, kCapabilityReturnToken, Field{"hh.return_token", 68, Look::kSecret},
                   h.return_token) &&
         visit.Reserved(Field{"hh.reserved84", 84}, 8);
}

template <typename Visitor>
[[gnu::always_inline]] constexpr bool EachField(Visitor& visit, IsOneOf<HelloAck> auto& h) {
  return visit(Bits("hah.majv", 16, 7, 4), h.major_version) &&  // [R3.4.1, R3.4.2]
         visit(Bits("hah.minv", 16, 3, 0), h.minor_version) &&
         visit.Reserved(Bits("hah.cap", 17, 7, 4), 1) &&
         visit(Bits("hah.cap", 17, 3, 0, Look::kCapabilities), h.capabilities) &&
         visit.Reserved(Field{"hah.reserved18", 18}, 1) &&
         visit(MaxAdverts("hah.max_adverts"), h.max_adverts) &&
         visit(BufferSize("hah.act_rcv_sz", 20), h.actual_receive_size) &&
         IfCapable(visit, h, kCapabilityReturnToken, Field{"hah.return_token", 24, Look::kSecret},
                   h.return_token) &&
         visit.Reserved(Field{"hah.reserved40", 40}, 156);
}

}  // namespace esdp::sdp::wire

#endif  // ESDP_IMPL_SDP_WIRE_FIELDS_H_
