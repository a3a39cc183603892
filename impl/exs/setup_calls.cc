#include "impl/exs/setup_calls.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>

#include "impl/exs/convert.h"
#include "impl/exs/stream_calls.h"

namespace esdp::exs {
namespace {

// What a connect ends at that nobody waits for.
class ConnectEnd final : public InnerEnd {
 public:
  explicit ConnectEnd(std::weak_ptr<ExsSocket> socket) : socket_(std::move(socket)) {}
  void OnEnd(const exs_event_t& event) override {
    const std::unique_ptr<ConnectEnd> own(this);
    Library::Current()->inner().EndInterest();
    const auto socket = socket_.lock();
    if (socket == nullptr) return;
    socket->calls().SetError(event.exs_evt_errno);
    socket->calls().SetConnecting(false);
    socket->calls().readiness().Refresh(false);
  }

 private:
  const std::weak_ptr<ExsSocket> socket_;
};

int BeginConnect(Library& library, ExsSocket& socket, const Address& to) {
  InnerQueue& inner = library.inner();
  inner.Collect();
  const std::shared_ptr<Queue> queue = inner.queue();
  if (queue == nullptr || !queue->Reserve(1)) return ENOBUFS;
  auto end = std::make_unique<ConnectEnd>(socket.weak_from_this());
  Operation filled;
  filled.type = EXS_EVT_CONNECT;
  filled.inner = true;
  filled.handle = static_cast<InnerEnd*>(end.get());
  socket.calls().SetConnecting(true);
  const int error =
      socket.Post(ExsSocket::Lane::kOther, *queue, filled,
                  [to](Socket& below, const OpArgs& args) { return below.Connect(to, args); });
  if (error != 0) {
    socket.calls().SetConnecting(false);
    queue->Release(1);
    return error;
  }
  (void)end.release();  // it is its own
  inner.BeginInterest();
  return EINPROGRESS;
}

}  // namespace

int Connect(Library& library, ExsSocket& socket, const sockaddr* address, socklen_t len) {
  if (address == nullptr) return EFAULT;
  const std::optional<Address> to = ToAddress(address, len);
  if (!to.has_value()) return len < sizeof(sa_family_t) ? EINVAL : EAFNOSUPPORT;
  if (socket.calls().connecting()) return EALREADY;
  if (IsConnected(socket)) return EISCONN;
  if (!Waits(socket, 0)) return BeginConnect(library, socket, *to);
  const Waiters::Place place(library);
  if (place.queue() == nullptr) return ENOBUFS;
  const absl::Time deadline = DeadlineOf(library, socket.calls().timeout(Way::kSending));
  const Waited waited = PostAndWait(socket, *place.queue(), deadline, [&](Operation& filled) {
    filled.type = EXS_EVT_CONNECT;
    return socket.Post(ExsSocket::Lane::kOther, *place.queue(), filled,
                       [&](Socket& below, const OpArgs& args) { return below.Connect(*to, args); });
  });
  socket.calls().readiness().Refresh(false);
  if (waited.error != 0) return waited.error;
  const int error = waited.event.exs_evt_errno;
  return error == ECANCELED && waited.taken_back != 0 ? waited.taken_back : error;
}

int Accept(Library& library, ExsSocket& listener, sockaddr* address, socklen_t* len, int flags,
           int* number) {
  if ((flags & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) != 0 || !listener.listening()) return EINVAL;
  const Waiters::Place place(library);
  if (place.queue() == nullptr) return ENOBUFS;
  const absl::Time deadline = Waits(listener, 0)
                                  ? DeadlineOf(library, listener.calls().timeout(Way::kReceiving))
                                  : absl::InfinitePast();
  exs_acceptaddr_t addresses{};
  const Waited waited = PostAndWait(listener, *place.queue(), deadline, [&](Operation& filled) {
    filled.type = EXS_EVT_ACCEPT;
    filled.addresses = &addresses;
    filled.accepts_left = 1;
    return listener.Post(ExsSocket::Lane::kOther, *place.queue(), filled,
                         [](Socket& below, const OpArgs& args) { return below.Accept(1, args); });
  });
  if (waited.error != 0) return waited.error;
  const int error = waited.event.exs_evt_errno;
  if (error == ECANCELED && waited.taken_back != 0) {
    return waited.taken_back == EINTR ? EINTR : EAGAIN;
  }
  if (error != 0) return error == ECANCELED ? EBADF : error;
  *number = waited.event.exs_evt_union.exs_evt_accept.exs_evt_newfd;
  if ((flags & SOCK_CLOEXEC) == 0) (void)fcntl(*number, F_SETFD, 0);
  if ((flags & SOCK_NONBLOCK) != 0) (void)fcntl(*number, F_SETFL, O_NONBLOCK);
  if (address == nullptr || len == nullptr) return 0;
  const char* const from = reinterpret_cast<const char*>(&addresses.exs_aa_remote);
  std::copy_n(from, std::min(*len, addresses.exs_aa_remote_len), reinterpret_cast<char*>(address));
  *len = addresses.exs_aa_remote_len;
  return 0;
}

}  // namespace esdp::exs
