#ifndef ESDP_IMPL_SDP_WIRE_KINDS_H_
#define ESDP_IMPL_SDP_WIRE_KINDS_H_

#include <cstddef>

#include "impl/sdp/wire/messages.h"

namespace esdp::sdp::wire {

// What messages.def says of each message.
template <typename T>
struct Kind;

#define ESDP_SDP_MESSAGE(Name, header_bytes, may_carry_payload, is_solicited) \
  template <>                                                                 \
  struct Kind<Name> {                                                         \
    static constexpr MessageId kId = MessageId::k##Name;                      \
    static constexpr const char* kName = #Name;                               \
    static constexpr size_t kHeaderBytes = header_bytes;                      \
    static constexpr bool kMayCarryPayload = may_carry_payload;               \
    static constexpr bool kIsSolicited = is_solicited;                        \
  };
#include "impl/sdp/wire/messages.def"
#undef ESDP_SDP_MESSAGE

}  // namespace esdp::sdp::wire

#endif  // ESDP_IMPL_SDP_WIRE_KINDS_H_
