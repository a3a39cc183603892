// Speaks the protocol of the stock rping program over qpip, in either role, so that each proves the
// other's RDMA: the client shows a text, the server reads it and writes it back.
//
//   rping_qpip client|server ADDRESS PORT ROUNDS
//
// The exit code is 0 when every round came back as it went out.

#include <poll.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "impl/base/bytes.h"
#include "impl/fabric/qpip/qpip_fabric.h"

namespace esdp::fabric {
namespace {

constexpr uint32_t kTextBytes = 64;
constexpr uint32_t kAdvertBytes = 16;
constexpr Access kAllRights{.local_write = true, .remote_read = true, .remote_write = true};

// How rping tells where its text is: address, key and length, in network order.
struct Advert {
  uint64_t address = 0;
  uint32_t key = 0;
  uint32_t length = 0;
};

uint64_t Load(const std::byte* from, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value = value << 8 | std::to_integer<uint64_t>(from[i]);
  return value;
}

void Store(std::byte* to, size_t bytes, uint64_t value) {
  for (size_t i = bytes; i > 0; --i, value >>= 8) to[i - 1] = static_cast<std::byte>(value & 0xff);
}

[[noreturn]] void Give(const std::string& up) {
  std::fprintf(stderr, "rping_qpip: %s\n", up.c_str());
  std::exit(1);
}

void Check(const absl::Status& status) {
  if (!status.ok()) Give(std::string(status.message().data(), status.message().size()));
}

class Rping {
 public:
  explicit Rping(const Address& address) : address_(address) {
    auto made = qpip::MakeQpipFabric({});
    Check(made.status());
    fabric_ = *std::move(made);
    region_ = *fabric_->Register(memory_.data(), memory_.size(), kAllRights);
    queue_pair_ = *fabric_->CreateQueuePair({});
    for (uint32_t i = 0; i < kReceives; ++i) PostReceive();
  }

  void Connect() {
    Check(fabric_->Connect(queue_pair_, Address{.family = address_.family}, address_, {},
                           fabric_->Now() + std::chrono::seconds(10)));
    Await(RendezvousType::kEstablished);
  }

  void Accept() {
    Check(fabric_->Listen(address_, 1).status());
    Check(fabric_->Accept(Await(RendezvousType::kConnectRequest).request, queue_pair_, {}));
    Await(RendezvousType::kEstablished);
  }

  // The stock client takes an end for a failure until it has counted its last round: it goes first.
  void Leave(bool first) {
    if (!first || fabric_->Disconnect(queue_pair_, true).ok()) Await(RendezvousType::kDisconnected);
  }

  // The client's part: shows the source, then the sink, each when it is asked for.
  bool Ask(int round) {
    std::snprintf(Text(kSource), kTextBytes, "rdma-ping-%d: spoken over qpip", round);
    std::memset(Text(kSink), 0, kTextBytes);
    Show(kSource);
    Hear();
    Show(kSink);
    Hear();
    return std::strcmp(Text(kSource), Text(kSink)) == 0;
  }

  // The server's: reads from the one, writes to the other.
  void Answer() {
    const Advert source = Hear();
    Move(Opcode::kRead, source, source.length);
    Say();
    const Advert sink = Hear();
    Move(Opcode::kWrite, sink, static_cast<uint32_t>(std::strlen(Text(kSource))) + 1);
    Say();
  }

 private:
  // Where things are in the memory.
  static constexpr size_t kSource = 0;
  static constexpr size_t kSink = kTextBytes;
  static constexpr size_t kOutgoing = 2 * kTextBytes;
  static constexpr size_t kIncoming = kOutgoing + kAdvertBytes;
  static constexpr uint32_t kReceives = 4;

  char* Text(size_t at) { return reinterpret_cast<char*>(memory_.data() + at); }
  ScatterEntry Entry(size_t at, uint32_t length) {
    return {.region = region_, .address = memory_.data() + at, .length = length};
  }

  void PostReceive() {
    const ScatterEntry entry =
        Entry(kIncoming + kAdvertBytes * (posted_++ % kReceives), kAdvertBytes);
    const ReceiveWork work{.entries = &entry, .entry_count = 1};
    Check(fabric_->PostReceive(queue_pair_, {&work, 1}));
  }

  void Show(size_t at) {
    const RemoteRange key = *fabric_->RegionKey(region_);
    Store(memory_.data() + kOutgoing, 8, key.address + at);
    Store(memory_.data() + kOutgoing + 8, 4, key.key);
    Store(memory_.data() + kOutgoing + 12, 4, kTextBytes);
    Say();
  }
  void Say() { Post({}, Entry(kOutgoing, kAdvertBytes)); }
  void Move(Opcode opcode, const Advert& there, uint32_t length) {
    if (length > kTextBytes) Give("the peer's text is longer than 64 bytes: run rping with -S 64");
    SendWork work;
    work.opcode = opcode;
    work.remote = {.key = there.key, .address = there.address};
    Post(work, Entry(kSource, length));
  }
  void Post(SendWork work, const ScatterEntry& entry) {
    work.entries = &entry;
    work.entry_count = 1;
    Check(fabric_->PostSend(queue_pair_, {&work, 1}));
    while (NextCompletion().opcode == Opcode::kReceive) ++heard_;
  }

  Advert Hear() {
    while (heard_ == 0) {
      if (NextCompletion().opcode == Opcode::kReceive) ++heard_;
    }
    --heard_;
    const std::byte* at = memory_.data() + kIncoming + kAdvertBytes * (taken_++ % kReceives);
    const Advert advert{Load(at, 8), static_cast<uint32_t>(Load(at + 8, 4)),
                        static_cast<uint32_t>(Load(at + 12, 4))};
    PostReceive();
    return advert;
  }

  void Wait() {
    pollfd descriptor{fabric_->fd(), POLLIN, 0};
    if (poll(&descriptor, 1, 10'000) != 1) Give("the peer is silent");
  }
  Completion NextCompletion() {
    Completion completion;
    while (fabric_->Poll({&completion, 1}) == 0) Wait();
    if (completion.status != WorkStatus::kSuccess) Give(ToString(completion.status));
    return completion;
  }
  RendezvousEvent Await(RendezvousType type) {
    RendezvousEvent event;
    Completion flushed;
    while (true) {
      (void)fabric_->Poll({&flushed, 1});
      if (fabric_->PollRendezvous(event)) break;
      Wait();
    }
    if (event.type != type) Give(ToString(event.cause) + (": " + event.detail));
    return event;
  }

  const Address address_;
  std::unique_ptr<Fabric> fabric_;
  std::array<std::byte, kIncoming + kAdvertBytes * kReceives> memory_{};
  RegionId region_ = RegionId::kNone;
  QueuePairId queue_pair_ = QueuePairId::kNone;
  uint32_t posted_ = 0;
  uint32_t taken_ = 0;
  uint32_t heard_ = 0;
};

Address AddressOf(const char* text, uint16_t port) {
  Address address{.port = port};
  if (std::sscanf(text, "%hhu.%hhu.%hhu.%hhu", &address.bytes[12], &address.bytes[13],
                  &address.bytes[14], &address.bytes[15]) != 4) {
    Give("the address is no IPv4 address");
  }
  return address;
}

int Run(int count, char** arguments) {
  if (count != 5) Give("client|server ADDRESS PORT ROUNDS");
  Rping rping(AddressOf(arguments[2], static_cast<uint16_t>(std::atoi(arguments[3]))));
  const bool asks = std::strcmp(arguments[1], "client") == 0;
  asks ? rping.Connect() : rping.Accept();
  for (int round = 0; round < std::atoi(arguments[4]); ++round) {
    if (!asks) {
      rping.Answer();
    } else if (!rping.Ask(round)) {
      Give("what came back is not what went out");
    }
  }
  rping.Leave(asks);
  std::puts("every round came back as it went out");
  return 0;
}

}  // namespace
}  // namespace esdp::fabric

int main(int count, char** arguments) { return esdp::fabric::Run(count, arguments); }
