#include "impl/fabric/qpip/ddp.h"

namespace esdp::fabric::qpip {
namespace {

constexpr uint8_t kTagged = 0x80;
constexpr uint8_t kLast = 0x40;
constexpr uint8_t kVersionMask = 0x03;

constexpr size_t kUlpControlAt = 1;

constexpr size_t kTagAt = 2;
constexpr size_t kOffsetAt = 6;

constexpr size_t kUlpWordAt = 2;
constexpr size_t kQueueAt = 6;
constexpr size_t kSequenceAt = 10;
constexpr size_t kMessageOffsetAt = 14;

}  // namespace

bool DecodeDdp(ConstBytes bytes, DdpHeader& header) {
  if (bytes.empty() || bytes.size() < DdpHeaderBytes(bytes[0])) return false;
  const uint8_t control = LoadBigEndian<uint8_t>(bytes, 0);
  header = DdpHeader{};
  header.tagged = (control & kTagged) != 0;
  header.last = (control & kLast) != 0;
  header.version = control & kVersionMask;
  header.ulp_control = LoadBigEndian<uint8_t>(bytes, kUlpControlAt);
  if (header.tagged) {
    header.tag = LoadBigEndian<uint32_t>(bytes, kTagAt);
    header.offset = LoadBigEndian<uint64_t>(bytes, kOffsetAt);
  } else {
    header.ulp_word = LoadBigEndian<uint32_t>(bytes, kUlpWordAt);
    header.queue = LoadBigEndian<uint32_t>(bytes, kQueueAt);
    header.sequence = LoadBigEndian<uint32_t>(bytes, kSequenceAt);
    header.message_offset = LoadBigEndian<uint32_t>(bytes, kMessageOffsetAt);
  }
  return true;
}

size_t EncodeDdp(const DdpHeader& header, Bytes out) {
  const int control =
      (header.tagged ? kTagged : 0) | (header.last ? kLast : 0) | (header.version & kVersionMask);
  StoreBigEndian(out, 0, static_cast<uint8_t>(control));
  StoreBigEndian(out, kUlpControlAt, header.ulp_control);
  if (header.tagged) {
    StoreBigEndian(out, kTagAt, header.tag);
    StoreBigEndian(out, kOffsetAt, header.offset);
  } else {
    StoreBigEndian(out, kUlpWordAt, header.ulp_word);
    StoreBigEndian(out, kQueueAt, header.queue);
    StoreBigEndian(out, kSequenceAt, header.sequence);
    StoreBigEndian(out, kMessageOffsetAt, header.message_offset);
  }
  return header.bytes();
}

}  // namespace esdp::fabric::qpip
