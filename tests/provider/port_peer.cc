#include "tests/provider/port_peer.h"

#include <array>
#include <utility>
#include <variant>

#include "gtest/gtest.h"
#include "impl/sdp/wire/codec.h"

namespace esdp::provider {

namespace wire = sdp::wire;

using fabric::Opcode;
using fabric::ScatterEntry;
using fabric::WorkStatus;

PortPeer::PortPeer(std::unique_ptr<fabric::Fabric> fabric, RunUntil run_until)
    : run_until_(std::move(run_until)),
      receive_bytes_(kBuffers * kBufferBytes),
      send_bytes_(kBufferBytes),
      read_bytes_(64 * 1024),
      fabric_(std::move(fabric)) {
  const auto registered = [this](std::vector<std::byte>& memory) {
    const auto region = fabric_->Register(memory.data(), memory.size(), {.local_write = true});
    EXPECT_TRUE(region.ok()) << region.status();
    return region.value_or(fabric::RegionId::kNone);
  };
  receive_region_ = registered(receive_bytes_);
  send_region_ = registered(send_bytes_);
  read_region_ = registered(read_bytes_);
  const auto made = fabric_->CreateQueuePair({.send_work = 16, .receive_work = kBuffers});
  EXPECT_TRUE(made.ok()) << made.status();
  queue_pair_ = *made;
  for (uint64_t i = 0; i < kBuffers; ++i) PostReceive(i);
}

PortPeer::~PortPeer() { (void)fabric_->DestroyQueuePair(queue_pair_); }

ScatterEntry PortPeer::Entry(std::vector<std::byte>& memory, size_t offset, uint32_t length) const {
  const fabric::RegionId region = &memory == &receive_bytes_ ? receive_region_
                                  : &memory == &send_bytes_  ? send_region_
                                                             : read_region_;
  return {region, memory.data() + offset, length};
}

void PortPeer::PostReceive(uint64_t buffer) {
  const ScatterEntry entry = Entry(receive_bytes_, buffer * kBufferBytes, kBufferBytes);
  const fabric::ReceiveWork work{buffer, &entry, 1};
  (void)fabric_->PostReceive(queue_pair_, absl::MakeConstSpan(&work, 1));
}

bool PortPeer::Connect(const fabric::Address& server, uint8_t max_adverts) {
  wire::Hello hello;
  hello.max_adverts = max_adverts;
  hello.desired_remote_receive_size = hello.local_receive_size = kBufferBytes;
  hello.local_port = 40000;
  hello.source_address[12] = hello.destination_address[12] = 127;
  hello.source_address[15] = hello.destination_address[15] = 1;
  wire::Message message;
  message.base.buffers = kBuffers;
  message.body = hello;
  std::array<std::byte, wire::kHelloBytes> bytes{};
  wire::Encode(message, 0, bytes);
  fabric::Address any;
  const absl::Status asked =
      fabric_->Connect(queue_pair_, any, server, bytes, fabric_->Now() + std::chrono::seconds(5));
  EXPECT_TRUE(asked.ok()) << asked;
  run_until_([this] {
    Poll();
    return established_ || ended_.has_value();
  });
  if (established_) Say(wire::Data{});
  return established_;
}

void PortPeer::Say(const wire::Body& body, uint32_t payload_bytes,
                   std::optional<uint32_t> invalidate_key) {
  wire::Message message;
  message.base.buffers = kBuffers;
  message.base.sequence = ++last_sent_;
  message.base.acknowledged = last_received_;
  message.body = body;
  const size_t header = wire::Encode(message, payload_bytes, send_bytes_);
  const auto length = static_cast<uint32_t>(header + payload_bytes);
  WaitFor(Post(Opcode::kSend, Entry(send_bytes_, 0, length), {}, invalidate_key));
}

uint64_t PortPeer::Post(Opcode opcode, const ScatterEntry& entry, const fabric::RemoteRange& remote,
                        std::optional<uint32_t> invalidate_key) {
  fabric::SendWork work;
  work.work_id = next_work_++;
  work.opcode = opcode;
  work.entries = &entry;
  work.entry_count = 1;
  work.remote = remote;
  work.has_invalidate = invalidate_key.has_value();
  work.invalidate_key = invalidate_key.value_or(0);
  const absl::Status posted = fabric_->PostSend(queue_pair_, absl::MakeConstSpan(&work, 1));
  if (!posted.ok()) done_[work.work_id] = WorkStatus::kFlushed;
  return work.work_id;
}

WorkStatus PortPeer::WaitFor(uint64_t work) {
  const bool done = run_until_([this, work] {
    Poll();
    return done_.count(work) != 0;
  });
  EXPECT_TRUE(done) << "work that never completes";
  return done ? done_[work] : WorkStatus::kTransport;
}

WorkStatus PortPeer::Read(const fabric::RemoteRange& from, uint32_t length) {
  return WaitFor(Post(Opcode::kRead, Entry(read_bytes_, 0, length), from, std::nullopt));
}

WorkStatus PortPeer::Write(const fabric::RemoteRange& to, uint32_t length) {
  for (std::byte& byte : send_bytes_) byte = std::byte{0xee};
  return WaitFor(Post(Opcode::kWrite, Entry(send_bytes_, 0, length), to, std::nullopt));
}

std::optional<PortPeer::Arrived> PortPeer::Next() {
  run_until_([this] {
    Poll();
    return !arrived_.empty() || ended_.has_value();
  });
  if (arrived_.empty()) return std::nullopt;
  Arrived next = std::move(arrived_.front());
  arrived_.pop_front();
  return next;
}

std::optional<fabric::Cause> PortPeer::ended() {
  Poll();
  return ended_;
}

std::optional<fabric::Cause> PortPeer::WaitForEnd() {
  run_until_([this] {
    Poll();
    return ended_.has_value();
  });
  return ended_;
}

void PortPeer::Poll() {
  std::array<fabric::Completion, 16> completions;
  for (size_t count = 1; count > 0;) {
    count = fabric_->Poll(absl::MakeSpan(completions));
    for (size_t i = 0; i < count; ++i) Take(completions[i]);
  }
  fabric::RendezvousEvent event;
  while (fabric_->PollRendezvous(event)) {
    if (event.type == fabric::RendezvousType::kEstablished) established_ = true;
    const bool over = event.type == fabric::RendezvousType::kDisconnected ||
                      event.type == fabric::RendezvousType::kConnectFailed;
    if (over) ended_ = event.cause;
  }
}

void PortPeer::Take(const fabric::Completion& completion) {
  if (completion.opcode != Opcode::kReceive) {
    done_[completion.work_id] = completion.status;
    return;
  }
  if (completion.status != WorkStatus::kSuccess) return;
  const ConstBytes bytes =
      ConstBytes(receive_bytes_).subspan(completion.work_id * kBufferBytes, completion.byte_length);
  Arrived arrived;
  const auto error = wire::Decode(bytes, arrived.message);
  EXPECT_FALSE(error.has_value()) << "not SDP: " << error->field << " " << error->reason;
  last_received_ = arrived.message.base.sequence;
  const ConstBytes payload = bytes.subspan(wire::HeaderBytes(wire::IdOf(arrived.message)));
  arrived.payload.assign(payload.begin(), payload.end());
  if (completion.has_invalidated) arrived.invalidated_key = completion.invalidated_key;
  const bool bare = std::holds_alternative<wire::Data>(arrived.message.body) && payload.empty();
  if (!bare) arrived_.push_back(std::move(arrived));
  PostReceive(completion.work_id);
}

}  // namespace esdp::provider
