#ifndef ESDP_IMPL_FABRIC_QPIP_STARTUP_H_
#define ESDP_IMPL_FABRIC_QPIP_STARTUP_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "impl/base/bytes.h"
#include "impl/fabric/qpip/mpa.h"
#include "impl/fabric/qpip/rdmap.h"
#include "impl/fabric/qpip/tcp_stream.h"
#include "impl/fabric/types.h"

namespace esdp::fabric::qpip {

// What two sides agreed on in their MPA frames.
struct Negotiated {
  bool initiator = false;
  bool checksum = false;
  bool sends_ready_sign = false;     // initiator: a zero-length RDMA Write goes first (RFC 6581)
  bool awaits_ready_sign = false;    // responder
  uint32_t initiator_depth = 0;      // RDMA Reads this side may have in flight
  uint32_t responder_resources = 0;  // and the peer
};

// What this side brings along.
struct Offer {
  bool checksum = false;
  uint32_t initiator_depth = 0;
  uint32_t responder_resources = 0;
};

// The frame that an initiator sends: revision 2, asks for a ready-to-receive RDMA Write.
MpaStartup MakeRequest(const Offer& offer, size_t private_data_bytes);

// What a responder makes of a request. It cannot be had with markers: those are rejected.
Negotiated AnswerRequest(const MpaStartup& request, const Offer& offer);
MpaStartup MakeReply(const MpaStartup& request, const Negotiated& negotiated,
                     size_t private_data_bytes);
MpaStartup MakeRejection(const MpaStartup& request, size_t private_data_bytes);

// What an initiator makes of the reply to its request. If it cannot go on: why, and the reason of
// the Terminate that tells the peer, where RFC 6581 asks for one.
struct ReplyVerdict {
  Cause cause = Cause::kNone;
  std::string detail;
  Negotiated negotiated;
  std::optional<TerminateReason> farewell;
};
ReplyVerdict JudgeReply(const MpaStartup& reply, const Offer& offer);

std::vector<std::byte> EncodeStartup(const MpaStartup& startup, ConstBytes private_data);

// Reads one start-up frame from a stream, and not a byte beyond it.
class StartupReader {
 public:
  enum class Outcome : uint8_t { kMore, kDone, kEnd, kFailed, kMalformed };

  explicit StartupReader(MpaKind kind) : kind_(kind) {}

  Outcome Read(TcpStream& stream);
  const MpaStartup& startup() const { return startup_; }
  ConstBytes private_data() const;
  int error() const { return error_; }
  MpaError malformed() const { return malformed_; }

 private:
  const MpaKind kind_;
  size_t filled_ = 0;
  size_t needed_ = kMpaHeaderBytes;
  int error_ = 0;
  MpaError malformed_ = MpaError::kNone;
  MpaStartup startup_;
  std::array<std::byte, kMpaHeaderBytes + kMpaPrivateDataMax> bytes_;
};

}  // namespace esdp::fabric::qpip

#endif  // ESDP_IMPL_FABRIC_QPIP_STARTUP_H_
