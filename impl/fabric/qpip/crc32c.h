#ifndef ESDP_IMPL_FABRIC_QPIP_CRC32C_H_
#define ESDP_IMPL_FABRIC_QPIP_CRC32C_H_

#include <isa-l/crc.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "impl/base/bytes.h"

namespace esdp::fabric::qpip {

// CRC32C (RFC 3720 appendix B.4, RFC 5044 section 4.4) over bytes that come in pieces.
class Crc32c {
 public:
  void Add(ConstBytes bytes) {
    while (!bytes.empty()) {
      const ConstBytes piece = bytes.first(std::min(bytes.size(), kPieceBytesMax));
      // ISA-L takes a pointer to non-const bytes and only reads them.
      auto* data = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(piece.data()));
      state_ = crc32_iscsi(data, static_cast<int>(piece.size()), state_);
      bytes = bytes.subspan(piece.size());
    }
  }

  uint32_t value() const { return ~state_; }

 private:
  static constexpr size_t kPieceBytesMax = size_t{1} << 30;  // ISA-L counts in int

  uint32_t state_ = 0xffffffffu;
};

}  // namespace esdp::fabric::qpip

#endif  // ESDP_IMPL_FABRIC_QPIP_CRC32C_H_
