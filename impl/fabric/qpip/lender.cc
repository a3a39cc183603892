#include "impl/fabric/qpip/lender.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>

#include "absl/status/status.h"

namespace esdp::fabric::qpip {
namespace {

// As much as a system grants everybody; with less there are more system calls.
constexpr int kPipeBytes = 1 << 20;

// splice has no way to ask for an error alone when the peer is gone.
class WithoutSigpipe {
 public:
  // `raised` is looked at in the end.
  explicit WithoutSigpipe(const bool& raised) : raised_(raised) {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    if (sigismember(&before_, SIGPIPE) == 1) {
      sigset_t pending;
      sigpending(&pending);
      pending_before_ = sigismember(&pending, SIGPIPE) == 1;
    }
  }
  ~WithoutSigpipe() {
    const timespec at_once{};
    if (raised_ && !pending_before_) sigtimedwait(&pipe_, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;

 private:
  const bool& raised_;
  sigset_t pipe_;
  sigset_t before_;
  bool pending_before_ = false;
};

}  // namespace

absl::StatusOr<Lender> Lender::Open() {
  Lender lender;
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0) {
    lender.out_ = ends[0];
    lender.in_ = ends[1];
    lender.void_ = open("/dev/null", O_WRONLY | O_CLOEXEC);
  }
  if (lender.void_ < 0) {
    return absl::ResourceExhaustedError(std::string("cannot open the pipe that lends pages: ") +
                                        std::strerror(errno));
  }
  (void)fcntl(lender.in_, F_SETPIPE_SZ, kPipeBytes);
  return lender;
}

void Lender::Close() {
  for (int* const descriptor : {&in_, &out_, &void_}) {
    if (*descriptor >= 0) close(std::exchange(*descriptor, -1));
  }
}

Lender::Lender(Lender&& other) noexcept
    : in_(std::exchange(other.in_, -1)),
      out_(std::exchange(other.out_, -1)),
      void_(std::exchange(other.void_, -1)) {}

IoResult Lender::Write(TcpStream& stream, IoVector& source) {
  raised_ = false;
  const WithoutSigpipe guard(raised_);
  IoResult all{.outcome = IoOutcome::kMoved};
  const size_t count = source.count();
  for (size_t first = 0, end = 0; first < count; first = end) {
    size_t wanted = source[first].size();
    const bool large = wanted >= kPieceMin;
    for (end = first + 1; !large && end < count && source[end].size() < kPieceMin; ++end) {
      wanted += source[end].size();
    }
    const IoResult part = large ? Lend(stream, source[first], end < count)
                                : stream.Write({source.data() + first, end - first}, end < count);
    // What ends the stream says so again.
    if (part.outcome != IoOutcome::kMoved) return all.bytes != 0 ? all : part;
    all.bytes += part.bytes;
    if (part.bytes < wanted) break;
  }
  return all;
}

IoResult Lender::Lend(TcpStream& stream, ConstBytes piece, bool more) {
  IoResult all{.outcome = IoOutcome::kMoved};
  while (all.bytes < piece.size()) {
    const ConstBytes left = piece.subspan(all.bytes);
    iovec rest{const_cast<std::byte*>(left.data()), left.size()};
    const ssize_t held = vmsplice(in_, &rest, 1, SPLICE_F_NONBLOCK);
    IoResult part;
    if (held <= 0) {
      part = stream.Write({&rest, 1}, more);
    } else {
      part =
          Pass(stream, static_cast<size_t>(held), more || static_cast<size_t>(held) < left.size());
    }
    if (part.outcome != IoOutcome::kMoved) return all.bytes != 0 ? all : part;
    all.bytes += part.bytes;
    if (part.bytes < (held <= 0 ? left.size() : static_cast<size_t>(held))) break;
  }
  return all;
}

// What the stream does not take is left out: the next write begins with it.
IoResult Lender::Pass(TcpStream& stream, size_t held, bool more) {
  const unsigned flags = SPLICE_F_NONBLOCK | (more ? SPLICE_F_MORE : 0u);
  size_t passed = 0;
  IoResult part{.outcome = IoOutcome::kMoved};
  while (passed < held && part.outcome == IoOutcome::kMoved) {
    part = Written(splice(out_, nullptr, stream.descriptor(), nullptr, held - passed, flags));
    passed += part.bytes;
  }
  raised_ = raised_ || part.error == EPIPE;
  Discard(held - passed);
  if (passed != 0) return {.outcome = IoOutcome::kMoved, .bytes = passed};
  return part;
}

// What stayed would go to the next stream: rather than that nothing is lent any more.
void Lender::Discard(size_t bytes) {
  while (bytes != 0) {
    const ssize_t gone = splice(out_, nullptr, void_, nullptr, bytes, 0);
    if (gone <= 0) return Close();
    bytes -= static_cast<size_t>(gone);
  }
}

}  // namespace esdp::fabric::qpip
