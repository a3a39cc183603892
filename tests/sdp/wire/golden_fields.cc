#include "tests/sdp/wire/golden_fields.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "impl/base/bytes.h"

namespace esdp::sdp::wire {
namespace {

using Number = std::function<uint64_t(const Message&)>;

template <typename T, typename Member>
Number Of(Member T::*member) {
  return [member](const Message& message) {
    return static_cast<uint64_t>(std::get<T>(message.body).*member);
  };
}

template <typename Member>
Number OfBase(Member BaseHeader::*member) {
  return [member](const Message& message) { return static_cast<uint64_t>(message.base.*member); };
}

Number Bit(Number whole, unsigned bit) {
  return [whole, bit](const Message& message) { return whole(message) >> bit & 1; };
}

Number Nibbles(Number high, Number low) {
  return [high, low](const Message& message) { return high(message) << 4 | low(message); };
}

Number PartOfServiceId(unsigned shift, uint64_t mask) {
  return [shift, mask](const Message& message) {
    return std::get<SuspComm>(message.body).service_id >> shift & mask;
  };
}

std::map<std::string, Number, std::less<>> BaseNumbers() {
  const Number flags = OfBase(&BaseHeader::flags);
  return {
      {"bsdh.mid", [](const Message& message) { return static_cast<uint64_t>(IdOf(message)); }},
      {"bsdh.flags", flags},
      {"bsdh.flags.oob_pres", Bit(flags, 0)},
      {"bsdh.flags.oob_pend", Bit(flags, 1)},
      {"bsdh.flags.req_pipe", Bit(flags, 2)},
      {"bsdh.bufs", OfBase(&BaseHeader::buffers)},
      {"bsdh.len", OfBase(&BaseHeader::length)},
      {"bsdh.mseq", OfBase(&BaseHeader::sequence)},
      {"bsdh.mseqack", OfBase(&BaseHeader::acknowledged)},
  };
}

std::map<std::string, Number, std::less<>> OpeningNumbers() {
  const Number hello_capabilities = Of(&Hello::capabilities);
  const Number ack_capabilities = Of(&HelloAck::capabilities);
  return {
      {"hh.version", Nibbles(Of(&Hello::major_version), Of(&Hello::minor_version))},
      {"hh.majv", Of(&Hello::major_version)},
      {"hh.minv", Of(&Hello::minor_version)},
      {"hh.ipv_cap", Nibbles(Of(&Hello::ip_version), hello_capabilities)},
      {"hh.ipv", Of(&Hello::ip_version)},
      {"hh.cap", hello_capabilities},
      {"hh.cap.invalidate", Bit(hello_capabilities, 0)},
      {"hh.cap.ext_max_adverts", Bit(hello_capabilities, 1)},
      {"hh.max_adverts", Of(&Hello::max_adverts)},
      {"hh.des_rem_rcv_sz", Of(&Hello::desired_remote_receive_size)},
      {"hh.local_rcv_sz", Of(&Hello::local_receive_size)},
      {"hh.local_port", Of(&Hello::local_port)},
      {"hh.ext_max_adverts", Of(&Hello::extended_max_adverts)},
      {"hah.version", Nibbles(Of(&HelloAck::major_version), Of(&HelloAck::minor_version))},
      {"hah.majv", Of(&HelloAck::major_version)},
      {"hah.minv", Of(&HelloAck::minor_version)},
      {"hah.cap", ack_capabilities},
      {"hah.cap.invalidate", Bit(ack_capabilities, 0)},
      {"hah.max_adverts", Of(&HelloAck::max_adverts)},
      {"hah.act_rcv_sz", Of(&HelloAck::actual_receive_size)},
  };
}

std::map<std::string, Number, std::less<>> BodyNumbers() {
  const Number send_half = Of(&ModeChange::changes_send_half);
  const Number mode = Of(&ModeChange::mode);
  return {
      {"srcah.len", Of(&SrcAvail::length)},
      {"srcah.rkey", Of(&SrcAvail::remote_key)},
      {"srcah.va", Of(&SrcAvail::virtual_address)},
      {"sinkah.len", Of(&SinkAvail::length)},
      {"sinkah.rkey", Of(&SinkAvail::remote_key)},
      {"sinkah.va", Of(&SinkAvail::virtual_address)},
      {"sinkah.non_discards", Of(&SinkAvail::non_discards)},
      {"rrch.len", Of(&RdmaRdCompl::length)},
      {"rwch.len", Of(&RdmaWrCompl::length)},
      {"mch.s", send_half},
      {"mch.mode", mode},
      {"mch.s_mode",
       [send_half, mode](const Message& message) {
         return send_half(message) << 7 | mode(message) << 4;
       }},
      {"crbh.des_sz", Of(&ChRcvBuf::desired_size)},
      {"crbah.act_sz", Of(&ChRcvBufAck::actual_size)},
      {"suspch.constant1", PartOfServiceId(32, 0xffffffff)},
      {"suspch.constant2", PartOfServiceId(16, 0xffff)},
      {"suspch.port", PartOfServiceId(0, 0xffff)},
  };
}

const Number* FindNumber(std::string_view name) {
  static const std::map<std::string, Number, std::less<>> numbers = [] {
    auto all = BaseNumbers();
    all.merge(OpeningNumbers());
    all.merge(BodyNumbers());
    return all;
  }();
  const auto found = numbers.find(name);
  return found == numbers.end() ? nullptr : &found->second;
}

// The bytes that a field without a number stands for in the message.
std::optional<ConstBytes> FindBytes(const Message& message, const golden::Vector& vector,
                                    std::string_view name) {
  if (name == "payload") return ConstBytes(vector.bytes).subspan(HeaderBytes(IdOf(message)));
  const Hello* const hello = std::get_if<Hello>(&message.body);
  if (hello == nullptr) return std::nullopt;
  if (name == "hh.src_addr") return std::as_bytes(std::span(hello->source_address));
  if (name == "hh.dst_addr") return std::as_bytes(std::span(hello->destination_address));
  return std::nullopt;
}

AddressBytes Ipv4(const std::string& text) {
  AddressBytes address{};
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (std::sscanf(text.c_str(), "%u.%u.%u.%u", &a, &b, &c, &d) != 4) return address;
  address[12] = static_cast<uint8_t>(a);
  address[13] = static_cast<uint8_t>(b);
  address[14] = static_cast<uint8_t>(c);
  address[15] = static_cast<uint8_t>(d);
  return address;
}

}  // namespace

std::string Difference(const Message& message, const golden::Vector& vector,
                       const golden::Field& field) {
  if (field.name.find("reserved") != std::string::npos) return {};  // no member stands for it
  if (const Number* const number = FindNumber(field.name)) {
    const uint64_t wanted = field.number.value_or(0);  // 'zero' has no number
    const uint64_t found = (*number)(message);
    if (found == wanted) return {};
    return field.name + " is " + std::to_string(found) + ", not " + std::to_string(wanted);
  }
  const std::optional<ConstBytes> bytes = FindBytes(message, vector, field.name);
  if (!bytes) return field.name + " is unknown";
  return std::ranges::equal(*bytes, field.bytes) ? "" : field.name + " has other bytes";
}

TransportAddresses AddressesOf(const golden::Vector& vector) {
  TransportAddresses addresses;
  addresses.peer = Ipv4(vector.transport_source);
  addresses.local = Ipv4(vector.transport_destination);
  const size_t space = vector.transport_source.find(' ');
  addresses.peer_port = static_cast<uint16_t>(std::stoul(vector.transport_source.substr(space)));
  return addresses;
}

}  // namespace esdp::sdp::wire
