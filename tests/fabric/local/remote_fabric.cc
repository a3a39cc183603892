#include "tests/fabric/local/remote_fabric.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "impl/base/clock.h"
#include "tests/base/descriptor_passing.h"
#include "tests/fabric/local/remote_message.h"

namespace esdp::fabric {
namespace {

constexpr size_t kArena = size_t{1} << 30;  // of addresses
constexpr size_t kPage = 4096;

std::byte* Arena() {
  static std::byte* const arena = static_cast<std::byte*>(mmap(
      nullptr, kArena, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  return arena;
}

// --- there ---------------------------------------------------------------------------------------

class Servant {
 public:
  Servant(std::unique_ptr<Fabric> fabric, int socket)
      : fabric_(std::move(fabric)), socket_(socket) {}

  void Run() {
    Message asked;
    while (asked.Receive(socket_)) {
      const auto call = asked.Get<Call>();
      if (call == Call::kEnd) return;
      Message answer;
      if (call < Call::kListen) {
        Memory(call, asked, answer);
      } else {
        Rendezvous(call, asked, answer);
      }
      if (!answer.Send(socket_)) return;
    }
  }

 private:
  void Memory(Call call, Message& asked, Message& answer) {
    std::vector<std::vector<ScatterEntry>> entries;
    const auto id = call == Call::kCreate || call == Call::kRegister ? 0 : asked.Get<uint64_t>();
    const QueuePairId queue_pair{id};
    if (call == Call::kRegister) {
      auto* const base = asked.Get<std::byte*>();
      const auto length = asked.Get<uint64_t>();
      PutAnswer(answer, fabric_->Register(base, length, asked.Get<Access>()));
    }
    if (call == Call::kDeregister) answer.Put(fabric_->Deregister(RegionId{id}));
    if (call == Call::kRegionKey) PutAnswer(answer, fabric_->RegionKey(RegionId{id}));
    if (call == Call::kBind) {
      const auto region = asked.Get<RegionId>();
      auto* const address = asked.Get<std::byte*>();
      const auto length = asked.Get<uint64_t>();
      PutAnswer(answer, fabric_->Bind(queue_pair, region, address, length, asked.Get<Access>()));
    }
    if (call == Call::kUnbind) answer.Put(fabric_->Unbind(queue_pair, asked.Get<uint32_t>()));
    if (call == Call::kWritten) answer.Put(fabric_->Written(queue_pair, asked.Get<uint32_t>()));
    if (call == Call::kCreate) {
      PutAnswer(answer, fabric_->CreateQueuePair(asked.Get<QueuePairOptions>()));
    }
    if (call == Call::kDestroy) answer.Put(fabric_->DestroyQueuePair(queue_pair));
    if (call == Call::kPostSend) {
      answer.Put(fabric_->PostSend(queue_pair, GetWork<SendWork>(asked, entries)));
    }
    if (call == Call::kPostReceive) {
      answer.Put(fabric_->PostReceive(queue_pair, GetWork<ReceiveWork>(asked, entries)));
    }
    if (call == Call::kRelease) fabric_->ReleaseUnusedReceives(queue_pair);
  }

  void Rendezvous(Call call, Message& asked, Message& answer) {
    if (call == Call::kListen) {
      const auto address = asked.Get<Address>();
      PutAnswer(answer, fabric_->Listen(address, asked.Get<int>()));
    }
    if (call == Call::kListenerAddress) {
      PutAnswer(answer, fabric_->ListenerAddress(asked.Get<ListenerId>()));
    }
    if (call == Call::kStop) answer.Put(fabric_->StopListening(asked.Get<ListenerId>()));
    if (call == Call::kConnect) {
      const auto queue_pair = asked.Get<QueuePairId>();
      const auto local = asked.Get<Address>();
      const auto peer = asked.Get<Address>();
      const auto data = asked.GetAll<std::byte>();
      answer.Put(fabric_->Connect(queue_pair, local, peer, data, asked.Get<Time>()));
    }
    if (call == Call::kAccept) {
      const auto request = asked.Get<RequestId>();
      const auto queue_pair = asked.Get<QueuePairId>();
      answer.Put(fabric_->Accept(request, queue_pair, asked.GetAll<std::byte>()));
    }
    if (call == Call::kReject) {
      const auto request = asked.Get<RequestId>();
      answer.Put(fabric_->Reject(request, asked.GetAll<std::byte>()));
    }
    if (call == Call::kDisconnect) {
      const auto queue_pair = asked.Get<QueuePairId>();
      answer.Put(fabric_->Disconnect(queue_pair, asked.Get<bool>()));
    }
    if (call == Call::kPoll) {
      std::vector<Completion> completions(asked.Get<size_t>());
      completions.resize(fabric_->Poll(absl::MakeSpan(completions)));
      answer.Put(absl::MakeConstSpan(completions));
    }
    if (call == Call::kPollRendezvous) PutEvent(answer);
    if (call == Call::kExpectWaits) answer.Put(fabric_->ExpectWaits(asked.Get<bool>()));
    if (call == Call::kHasUnpolled) answer.Put(fabric_->HasUnpolled());
    if (call == Call::kNextDeadline) answer.Put(fabric_->NextDeadline());
  }

  void PutEvent(Message& answer) {
    RendezvousEvent event;
    const bool told = fabric_->PollRendezvous(event);
    answer.Put(told).Put(event.detail);
    answer.Put(event.type).Put(event.listener).Put(event.request).Put(event.queue_pair);
    answer.Put(event.cause).Put(event.local).Put(event.peer).Put(event.initiator_depth);
    answer.Put(event.responder_resources).Put(event.private_data_bytes).Put(event.private_data);
  }

  std::unique_ptr<Fabric> fabric_;
  int socket_;
};

// --- here ----------------------------------------------------------------------------------------

class RemoteFabric final : public Fabric {
 public:
  RemoteFabric(int socket, pid_t process, Farewell farewell)
      : socket_(socket), process_(process), farewell_(farewell) {
    fd_ = TakeDescriptor(socket_, std::as_writable_bytes(std::span(&limits_, 1)));
    limits_.lends_messages = false;
  }
  ~RemoteFabric() override {
    if (farewell_ == Farewell::kKilled) {
      kill(process_, SIGKILL);
    } else {
      (void)Message().Put(Call::kEnd).Send(socket_);
    }
    waitpid(process_, nullptr, 0);
    close(fd_);
    close(socket_);
  }

  bool ok() const { return fd_ >= 0; }
  const char* name() const override { return "local"; }
  const Limits& limits() const override { return limits_; }
  Time Now() const override { return clock_.Now(); }
  int fd() const override { return fd_; }

  absl::StatusOr<RegionId> Register(std::byte* base, uint64_t length, Access access) override {
    return Value<RegionId>(Message().Put(Call::kRegister).Put(base).Put(length).Put(access));
  }
  absl::Status Deregister(RegionId region) override {
    return Plain(Message().Put(Call::kDeregister).Put(region));
  }
  absl::StatusOr<RemoteRange> RegionKey(RegionId region) override {
    return Value<RemoteRange>(Message().Put(Call::kRegionKey).Put(region));
  }
  absl::StatusOr<RemoteRange> Bind(QueuePairId id, RegionId region, std::byte* address,
                                   uint64_t length, Access access) override {
    return Value<RemoteRange>(
        Message().Put(Call::kBind).Put(id).Put(region).Put(address).Put(length).Put(access));
  }
  absl::Status Unbind(QueuePairId id, uint32_t key) override {
    return Plain(Message().Put(Call::kUnbind).Put(id).Put(key));
  }
  uint64_t Written(QueuePairId id, uint32_t key) const override {
    return Ask(Message().Put(Call::kWritten).Put(id).Put(key)).Get<uint64_t>();
  }
  absl::StatusOr<QueuePairId> CreateQueuePair(const QueuePairOptions& options) override {
    QueuePairOptions theirs = options;
    theirs.lend_messages = false;  // it would be memory of the other process
    return Value<QueuePairId>(Message().Put(Call::kCreate).Put(theirs));
  }
  absl::Status DestroyQueuePair(QueuePairId id) override {
    return Plain(Message().Put(Call::kDestroy).Put(id));
  }
  absl::Status PostSend(QueuePairId id, absl::Span<const SendWork> batch) override {
    Message message;
    PutWork(message.Put(Call::kPostSend).Put(id), batch);
    return Plain(message);
  }
  absl::Status PostReceive(QueuePairId id, absl::Span<const ReceiveWork> batch) override {
    Message message;
    PutWork(message.Put(Call::kPostReceive).Put(id), batch);
    return Plain(message);
  }
  void ReleaseUnusedReceives(QueuePairId id) override {
    (void)Ask(Message().Put(Call::kRelease).Put(id));
  }
  absl::StatusOr<ListenerId> Listen(const Address& address, int backlog) override {
    return Value<ListenerId>(Message().Put(Call::kListen).Put(address).Put(backlog));
  }
  absl::StatusOr<Address> ListenerAddress(ListenerId listener) const override {
    return Value<Address>(Message().Put(Call::kListenerAddress).Put(listener));
  }
  absl::Status StopListening(ListenerId listener) override {
    return Plain(Message().Put(Call::kStop).Put(listener));
  }
  absl::Status Connect(QueuePairId id, const Address& local, const Address& peer,
                       ConstBytes private_data, Time deadline) override {
    Message message;
    message.Put(Call::kConnect).Put(id).Put(local).Put(peer);
    message.Put(absl::MakeConstSpan(private_data.data(), private_data.size())).Put(deadline);
    return Plain(message);
  }
  absl::Status Accept(RequestId request, QueuePairId id, ConstBytes private_data) override {
    Message message;
    message.Put(Call::kAccept).Put(request).Put(id);
    return Plain(message.Put(absl::MakeConstSpan(private_data.data(), private_data.size())));
  }
  absl::Status Reject(RequestId request, ConstBytes private_data) override {
    Message message;
    message.Put(Call::kReject).Put(request);
    return Plain(message.Put(absl::MakeConstSpan(private_data.data(), private_data.size())));
  }
  absl::Status Disconnect(QueuePairId id, bool orderly) override {
    return Plain(Message().Put(Call::kDisconnect).Put(id).Put(orderly));
  }
  size_t Poll(absl::Span<Completion> completions) override {
    const auto polled =
        Ask(Message().Put(Call::kPoll).Put(completions.size())).GetAll<Completion>();
    std::copy(polled.begin(), polled.end(), completions.begin());
    return polled.size();
  }
  bool PollRendezvous(RendezvousEvent& event) override {
    Message answer = Ask(Message().Put(Call::kPollRendezvous));
    const bool told = answer.Get<bool>();
    event.detail = answer.GetText();
    event.type = answer.Get<RendezvousType>();
    event.listener = answer.Get<ListenerId>();
    event.request = answer.Get<RequestId>();
    event.queue_pair = answer.Get<QueuePairId>();
    event.cause = answer.Get<Cause>();
    event.local = answer.Get<Address>();
    event.peer = answer.Get<Address>();
    event.initiator_depth = answer.Get<uint32_t>();
    event.responder_resources = answer.Get<uint32_t>();
    event.private_data_bytes = answer.Get<uint16_t>();
    event.private_data = answer.Get<std::array<std::byte, kPrivateDataMax>>();
    return told;
  }
  bool ExpectWaits(bool expected) override {
    return Ask(Message().Put(Call::kExpectWaits).Put(expected)).Get<bool>();
  }
  bool HasUnpolled() const override { return Ask(Message().Put(Call::kHasUnpolled)).Get<bool>(); }
  Time NextDeadline() const override { return Ask(Message().Put(Call::kNextDeadline)).Get<Time>(); }

 private:
  Message Ask(const Message& message) const {
    Message answer;
    if (!message.Send(socket_) || !answer.Receive(socket_)) std::abort();  // it has crashed
    return answer;
  }
  absl::Status Plain(const Message& message) const { return Ask(message).GetStatus(); }
  template <typename T>
  absl::StatusOr<T> Value(const Message& message) const {
    Message answer = Ask(message);
    const absl::Status status = answer.GetStatus();
    if (!status.ok()) return status;
    return answer.Get<T>();
  }

  SystemClock clock_;
  Limits limits_;
  int fd_ = -1;
  int socket_;
  pid_t process_;
  Farewell farewell_;
};

}  // namespace

std::shared_ptr<std::byte> AllocateForBoth(size_t bytes) {
  static size_t used = 0;
  const size_t rounded = (bytes + kPage - 1) / kPage * kPage + kPage;
  if (used + rounded > kArena) {
    used = 0;  // whoever had it is gone by then
  }
  std::byte* const memory = Arena() + used;
  used += rounded;
  std::memset(memory, 0, bytes);
  return {memory, [](std::byte*) {}};
}

std::unique_ptr<Fabric> MakeRemoteFabric(const std::function<std::unique_ptr<Fabric>()>& make,
                                         Farewell farewell) {
  (void)Arena();
  std::array<int, 2> sockets{-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) return nullptr;
  const pid_t process = fork();
  if (process == 0) {
    close(sockets[0]);
    {
      std::unique_ptr<Fabric> fabric = make();
      const int fd = fabric->fd();
      const auto limits = std::as_bytes(std::span(&fabric->limits(), 1));
      if (!PassDescriptors(sockets[1], limits, {&fd, 1})) _exit(1);
      Servant(std::move(fabric), sockets[1]).Run();
    }
    _exit(0);
  }
  close(sockets[1]);
  auto remote = std::make_unique<RemoteFabric>(sockets[0], process, farewell);
  return remote->ok() ? std::move(remote) : nullptr;
}

}  // namespace esdp::fabric
