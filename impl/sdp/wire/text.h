#ifndef ESDP_IMPL_SDP_WIRE_TEXT_H_
#define ESDP_IMPL_SDP_WIRE_TEXT_H_

#include <string>

#include "impl/sdp/wire/messages.h"

namespace esdp::sdp::wire {

// One line, without an end of line, that names every field of a message as the golden vectors do:
//   SrcAvail flags=0 bufs=64 len=48 mseq=3 mseqack=1 srcah.len=131072 srcah.rkey=0x00012345
//   srcah.va=0x00007f1234567010
// Reserved places are left out. `message.base.length` is printed as it stands: Decode fills it in,
// Encode does not. Allocates; for traces and scenario files, not for the data path.
std::string ToText(const Message& message);

}  // namespace esdp::sdp::wire

#endif  // ESDP_IMPL_SDP_WIRE_TEXT_H_
