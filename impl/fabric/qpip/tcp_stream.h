#ifndef ESDP_IMPL_FABRIC_QPIP_TCP_STREAM_H_
#define ESDP_IMPL_FABRIC_QPIP_TCP_STREAM_H_

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "impl/base/bytes.h"
#include "impl/base/time.h"
#include "impl/fabric/qpip/options.h"
#include "impl/fabric/types.h"

namespace esdp::fabric::qpip {

// A list of pieces for one gathered write or scattered read.
class IoVector {
 public:
  static constexpr size_t kPiecesMax = 256;

  // Pieces that follow each other in memory become one. False when the list is full.
  bool Add(ConstBytes piece);
  // Leaves out the first `bytes` of what was added.
  void Skip(size_t bytes);
  void Clear() { first_ = count_ = bytes_ = 0; }

  size_t bytes() const { return bytes_; }
  size_t count() const { return count_ - first_; }
  size_t room() const { return kPiecesMax - count_; }
  iovec* data() { return pieces_.data() + first_; }
  Bytes operator[](size_t index) const {
    const iovec& piece = pieces_[first_ + index];
    return {static_cast<std::byte*>(piece.iov_base), piece.iov_len};
  }

 private:
  std::array<iovec, kPiecesMax> pieces_;
  size_t first_ = 0;
  size_t count_ = 0;
  size_t bytes_ = 0;
};

enum class IoOutcome : uint8_t { kMoved, kWouldBlock, kEnd, kFailed };

struct IoResult {
  IoOutcome outcome = IoOutcome::kFailed;
  size_t bytes = 0;
  int error = 0;  // errno, if kFailed
};

// What a system call that writes to a socket has said, by what it returned and errno.
IoResult Written(ssize_t result);

// What an errno of a socket means for the connection, and its text.
Cause CauseOfError(int error);
// The same of a connection that was there.
Cause CauseOfLoss(int error);
std::string ErrorText(int error);

// A non-blocking TCP socket, connecting or connected.
//
//   Owns:     the descriptor, which the destructor closes in order.
//   Threads:  not thread-safe.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   by IoResult, with the errno.
class TcpStream {
 public:
  TcpStream() = default;
  explicit TcpStream(int descriptor, const Address& peer = {},
                     const std::optional<Address>& local = {})
      : descriptor_(descriptor), peer_(peer), local_(local) {}
  ~TcpStream() { Close(); }
  TcpStream(TcpStream&& other) noexcept;
  TcpStream& operator=(TcpStream&& other) noexcept;

  // Whether this system knows what the options name; to be told before there is a connection.
  static absl::Status Check(const QpipOptions& options);
  // Starts to connect; writable when that is decided, TakeError tells how. A `local` without bytes
  // and port means any.
  static absl::StatusOr<TcpStream> Connect(const Address& local, const Address& peer,
                                           const QpipOptions& options);

  // A duplicate of a connected socket that somebody else has made, with a number above it.
  // InvalidArgument where it is none.
  static absl::StatusOr<TcpStream> Over(int descriptor, const QpipOptions& options);

  int descriptor() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }

  // No delay, buffers and congestion control. Options the system refuses are left as they are,
  // except a congestion control that it does not know.
  absl::Status Configure(const QpipOptions& options);
  // Has the system ask a peer of which nothing is heard for so long whether it is there, and give
  // up when three questions have no answer. Returns the time as the system knows it: whole seconds.
  Duration SetKeepAlive(Duration idle);
  // For how long the peer has owed an answer to what was sent, a probe of its closed window or a
  // keep-alive probe; 0 when it owes none. Windows that stay closed are no silence: probes of them
  // are answered.
  Duration Unanswered() const;

  IoResult Read(IoVector& target);
  IoResult Read(Bytes target);
  IoResult Write(IoVector& source) { return Write({source.data(), source.count()}, false); }
  // With `more` behind it, which may share its last packet.
  IoResult Write(std::span<iovec> source, bool more);
  IoResult Write(ConstBytes source);

  int TakeError();  // the pending errno, 0 for none
  Address LocalAddress() const;
  Address PeerAddress() const;  // also of a peer that has broken it off

  void EndWrites();  // FIN after what was written
  void Close();      // in order
  void Abort();      // RST: the peer sees that it was broken off

 private:
  int descriptor_ = -1;
  Address peer_;                  // as it was when the stream was made
  std::optional<Address> local_;  // of one that was connected then, whose peer that is for good
  int connect_error_ = 0;         // of a connect that failed at once
};

// Listens without blocking. AlreadyExists when the port is taken.
absl::StatusOr<TcpStream> ListenOn(const Address& address, int backlog);
// kWouldBlock when nobody waits; `stream` is set if kMoved.
IoOutcome AcceptFrom(const TcpStream& listener, TcpStream& stream, int& error);

}  // namespace esdp::fabric::qpip

#endif  // ESDP_IMPL_FABRIC_QPIP_TCP_STREAM_H_
