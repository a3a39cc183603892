#ifndef ESDP_IMPL_FABRIC_QPIP_LENDER_H_
#define ESDP_IMPL_FABRIC_QPIP_LENDER_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "impl/base/bytes.h"
#include "impl/fabric/qpip/tcp_stream.h"

namespace esdp::fabric::qpip {

// Writes to a TCP stream without a copy: the pages of a large piece are lent to the socket, which
// reads them when the peer's host takes them in, on loopback only when the peer itself does.
//
//   Owns:     a pipe, the system's way to hold pages, and where what it does not get rid of goes.
//   Threads:  not thread-safe. Raises no SIGPIPE and leaves the caller's signals alone.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   as TcpStream::Write. Pages that the system does not lend, as those of a device, are
//             copied. Open says ResourceExhausted when there are no descriptors.
class Lender {
 public:
  // What is shorter costs less to copy.
  static constexpr size_t kPieceMin = size_t{16} << 10;

  static absl::StatusOr<Lender> Open();
  ~Lender() { Close(); }
  Lender(Lender&& other) noexcept;
  Lender& operator=(Lender&&) = delete;

  // Large pieces must stay as they are until the peer has them, whatever becomes of the stream.
  IoResult Write(TcpStream& stream, IoVector& source);

 private:
  Lender() = default;

  IoResult Lend(TcpStream& stream, ConstBytes piece, bool more);
  IoResult Pass(TcpStream& stream, size_t held, bool more);
  void Discard(size_t bytes);
  void Close();

  int in_ = -1;          // of the pipe, where pages enter
  int out_ = -1;         // and where they leave it
  int void_ = -1;        // takes everything
  bool raised_ = false;  // SIGPIPE, in the Write that runs
};

}  // namespace esdp::fabric::qpip

#endif  // ESDP_IMPL_FABRIC_QPIP_LENDER_H_
