#include "tests/fabric/contract_harness.h"

#include <poll.h>

#include <algorithm>
#include <array>

#include "impl/base/shared_memory.h"

namespace esdp::fabric {
namespace {

SendWork WorkOf(Opcode opcode, uint64_t id, const std::vector<ScatterEntry>& entries) {
  SendWork work;
  work.work_id = id;
  work.opcode = opcode;
  work.entries = entries.data();
  work.entry_count = static_cast<uint32_t>(entries.size());
  return work;
}

std::shared_ptr<std::byte> AllocateHere(size_t bytes) {
  return {new std::byte[bytes]{}, std::default_delete<std::byte[]>()};
}

// Of the variant that is being tested.
auto& Allocator() {
  static std::function<std::shared_ptr<std::byte>(size_t)> allocator;
  return allocator;
}
bool& InFiles() {
  static bool in_files = false;
  return in_files;
}

}  // namespace

void Endpoint::Collect() {
  if (fabric_ == nullptr) return;
  bool found = true;
  while (found) {
    found = false;
    RendezvousEvent event;
    while (fabric_->PollRendezvous(event)) {
      events.push_back(event);
      found = true;
    }
    std::array<Completion, 16> batch;
    while (const size_t count = fabric_->Poll(absl::MakeSpan(batch))) {
      for (size_t i = 0; i < count; ++i) {
        if (on_polled) on_polled(batch[i]);
        if (batch[i].lent != nullptr) Place(batch[i]);
      }
      completions.insert(completions.end(), batch.begin(),
                         batch.begin() + static_cast<ptrdiff_t>(count));
      found = true;
    }
  }
}

void Endpoint::Place(const Completion& completion) {
  const auto found = receives_.find({completion.queue_pair, completion.work_id});
  if (found == receives_.end()) return;  // it is the test's own
  ConstBytes left(completion.lent, completion.byte_length);
  for (const ScatterEntry& entry : found->second) {
    const ConstBytes piece = left.first(std::min<size_t>(entry.length, left.size()));
    std::copy(piece.begin(), piece.end(), entry.address);
    left = left.subspan(piece.size());
  }
  EXPECT_TRUE(left.empty());
  fabric_->ReturnLent(completion.queue_pair);
}

absl::Status Endpoint::Send(QueuePairId queue_pair, uint64_t id,
                            const std::vector<ScatterEntry>& entries) {
  const SendWork work = WorkOf(Opcode::kSend, id, entries);
  return fabric_->PostSend(queue_pair, {&work, 1});
}

absl::Status Endpoint::SendAndInvalidate(QueuePairId queue_pair, uint64_t id,
                                         const std::vector<ScatterEntry>& entries, uint32_t key) {
  SendWork work = WorkOf(Opcode::kSend, id, entries);
  work.has_invalidate = true;
  work.invalidate_key = key;
  return fabric_->PostSend(queue_pair, {&work, 1});
}

absl::Status Endpoint::Receive(QueuePairId queue_pair, uint64_t id,
                               const std::vector<ScatterEntry>& entries) {
  receives_[{queue_pair, id}] = entries;
  const ReceiveWork work{.work_id = id,
                         .entries = entries.data(),
                         .entry_count = static_cast<uint32_t>(entries.size())};
  return fabric_->PostReceive(queue_pair, {&work, 1});
}

absl::Status Endpoint::Read(QueuePairId queue_pair, uint64_t id,
                            const std::vector<ScatterEntry>& entries, RemoteRange from) {
  SendWork work = WorkOf(Opcode::kRead, id, entries);
  work.remote = from;
  return fabric_->PostSend(queue_pair, {&work, 1});
}

absl::Status Endpoint::Write(QueuePairId queue_pair, uint64_t id,
                             const std::vector<ScatterEntry>& entries, RemoteRange to) {
  SendWork work = WorkOf(Opcode::kWrite, id, entries);
  work.remote = to;
  return fabric_->PostSend(queue_pair, {&work, 1});
}

absl::Status Endpoint::Invalidate(QueuePairId queue_pair, uint64_t id, uint32_t key) {
  SendWork work = WorkOf(Opcode::kInvalidate, id, {});
  work.invalidate_key = key;
  return fabric_->PostSend(queue_pair, {&work, 1});
}

Memory::Memory(Endpoint& endpoint, size_t size, Access access) : size_(size) {
  absl::StatusOr<RegionId> region;
  if (InFiles()) {
    const auto made = std::make_shared<WritableMemory>(*MakeWritableMemory(size, 0));
    bytes_ = {made, made->mapping.base()};
    region = endpoint->RegisterShared({made->file.number(), 0}, bytes_.get(), size, access);
  } else {
    bytes_ = Allocator()(size);
    region = endpoint->Register(bytes_.get(), size, access);
  }
  EXPECT_TRUE(region.ok()) << region.status();
  if (region.ok()) region_ = *region;
}

ScatterEntry Memory::Entry(size_t offset, size_t length) {
  return {.region = region_, .address = at(offset), .length = static_cast<uint32_t>(length)};
}

void Memory::Fill(uint64_t seed) {
  for (size_t i = 0; i < size_; ++i) {
    *at(i) = static_cast<std::byte>(((i + seed + 1) * 0x9e3779b97f4a7c15ull) >> 56);
  }
}

std::vector<std::byte> Memory::Copy(size_t offset, size_t length) const {
  const std::byte* const begin = bytes_.get() + offset;
  return {begin, begin + length};
}

bool Memory::IsClear(size_t offset, size_t length) const {
  const std::vector<std::byte> part = Copy(offset, length);
  return std::all_of(part.begin(), part.end(), [](std::byte byte) { return byte == std::byte{0}; });
}

void ContractTest::SetUp() {
  const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const auto not_here = GetParam().not_here.find(name.substr(0, name.find('/')));
  if (not_here != GetParam().not_here.end()) GTEST_SKIP() << not_here->second;
  Allocator() = GetParam().allocate ? GetParam().allocate : AllocateHere;
  InFiles() = GetParam().in_files;
  auto [one, two] = GetParam().make();
  ASSERT_NE(one, nullptr);
  ASSERT_NE(two, nullptr);
  one_ = std::make_unique<Endpoint>(std::move(one));
  two_ = std::make_unique<Endpoint>(std::move(two));
  tells_why_ = (*one_)->limits().tells_why && (*two_)->limits().tells_why;
  keeps_terminate_ = !tells_why_ && (*one_)->limits().initiator_speaks_first;
}

bool ContractTest::Wait(Duration remaining) {
  Fabric* first = one_->get() != nullptr ? one_->get() : two_->get();
  if (first->limits().virtual_time) return first->Advance(AddSaturating(first->Now(), remaining));
  std::vector<pollfd> descriptors;
  for (const Endpoint* endpoint : {one_.get(), two_.get()}) {
    if (endpoint->get() == nullptr) continue;
    if ((*endpoint)->fd() >= 0) descriptors.push_back({(*endpoint)->fd(), POLLIN, 0});
    const Time deadline = (*endpoint)->NextDeadline();
    if (deadline == kTimeInfinite) continue;
    remaining = std::min(remaining, std::max(deadline - (*endpoint)->Now(), Duration::zero()));
  }
  const auto rounded_up = std::chrono::ceil<std::chrono::milliseconds>(remaining).count();
  poll(descriptors.data(), descriptors.size(), static_cast<int>(rounded_up));
  return true;
}

bool ContractTest::Pump(const std::function<bool()>& done, Duration bound) {
  Endpoint& clock = one_->get() != nullptr ? *one_ : *two_;
  const Time end = clock->Now() + bound;
  while (true) {
    one_->Collect();
    two_->Collect();
    if (done()) return true;
    if (clock->Now() >= end || !Wait(end - clock->Now())) {
      one_->Collect();
      two_->Collect();
      return done();
    }
  }
}

void ContractTest::Settle() {
  Pump([] { return false; }, std::chrono::milliseconds(30));
}

void ContractTest::LetTimePass() {
  if (!(*one_)->limits().virtual_time) {
    poll(nullptr, 0, 20);
    return;
  }
  const Time end = (*one_)->Now() + std::chrono::milliseconds(20);
  while ((*one_)->Advance(end)) {
  }
}

QueuePairId ContractTest::Create(Endpoint& endpoint) {
  const absl::StatusOr<QueuePairId> queue_pair = endpoint->CreateQueuePair(Options());
  EXPECT_TRUE(queue_pair.ok()) << queue_pair.status();
  return queue_pair.value_or(QueuePairId::kNone);
}

Address ContractTest::Listening() {
  if (listener_ == ListenerId::kNone) {
    const absl::StatusOr<ListenerId> listener = (*two_)->Listen(GetParam().host, 128);
    EXPECT_TRUE(listener.ok()) << listener.status();
    listener_ = listener.value_or(ListenerId::kNone);
  }
  return (*two_)->ListenerAddress(listener_).value_or(Address{});
}

absl::Status ContractTest::StartConnecting(QueuePairId queue_pair, ConstBytes private_data,
                                           Duration patience) {
  const Address peer = Listening();
  return (*one_)->Connect(queue_pair, Address{.family = peer.family}, peer, private_data,
                          (*one_)->Now() + patience);
}

Link ContractTest::ConnectSilently(const QueuePairOptions& one, const QueuePairOptions& two) {
  Link link;
  link.one = (*one_)->CreateQueuePair(one).value_or(QueuePairId::kNone);
  link.two = (*two_)->CreateQueuePair(two).value_or(QueuePairId::kNone);
  const absl::Status connecting = StartConnecting(link.one);
  EXPECT_TRUE(connecting.ok()) << connecting;
  const RendezvousEvent request = NextEvent(*two_, RendezvousType::kConnectRequest);
  const absl::Status accepting = (*two_)->Accept(request.request, link.two, {});
  EXPECT_TRUE(accepting.ok()) << accepting;
  EXPECT_EQ(NextEvent(*one_, RendezvousType::kEstablished).queue_pair, link.one);
  EXPECT_EQ(NextEvent(*two_, RendezvousType::kEstablished).queue_pair, link.two);
  return link;
}

Link ContractTest::Connect(const QueuePairOptions& one, const QueuePairOptions& two) {
  const Link link = ConnectSilently(one, two);
  SpeakFirst(link);
  return link;
}

void ContractTest::SpeakFirst(const Link& link) {
  if (!(*one_)->limits().initiator_speaks_first) return;
  if (scratch_one_ == nullptr) {
    scratch_one_ = std::make_unique<Memory>(*one_, 1);
    scratch_two_ = std::make_unique<Memory>(*two_, 1);
  }
  constexpr uint64_t kFirstWord = 0xf125;
  EXPECT_TRUE(two_->Receive(link.two, kFirstWord, {scratch_two_->All()}).ok());
  EXPECT_TRUE(one_->Send(link.one, kFirstWord, {scratch_one_->All()}).ok());
  ExpectSuccess(*one_, link.one, kFirstWord);
  ExpectSuccess(*two_, link.two, kFirstWord);
}

RemoteRange ContractTest::Bind(Endpoint& endpoint, QueuePairId queue_pair, Memory& memory,
                               size_t offset, size_t length, Access access) {
  const absl::StatusOr<RemoteRange> range =
      endpoint->Bind(queue_pair, memory.region(), memory.at(offset), length, access);
  EXPECT_TRUE(range.ok()) << range.status();
  return range.value_or(RemoteRange{});
}

void ContractTest::ExpectReadRefused(const Link& link, RemoteRange from, size_t length) {
  Memory target(*one_, length);
  const absl::Status posted = one_->Read(link.one, 1, {target.All()}, from);
  EXPECT_TRUE(posted.ok()) << posted;
  const Completion completion = NextCompletion(*one_, link.one);
  EXPECT_EQ(completion.status, AsTold(WorkStatus::kRemoteAccess, completion.status))
      << ToString(completion.status);
  ExpectEnds(Cause::kRemoteTerminate, Cause::kLocalAccess);
  EXPECT_TRUE(target.IsClear(0, length));
}

void ContractTest::ExpectWriteRefused(const Link& link, RemoteRange to, size_t length) {
  Memory source(*one_, length);
  source.Fill(0xbad);
  const absl::Status posted = one_->Write(link.one, 1, {source.All()}, to);
  EXPECT_TRUE(posted.ok()) << posted;
  const Completion completion = NextCompletion(*one_, link.one);
  EXPECT_TRUE(completion.status == WorkStatus::kRemoteAccess ||
              completion.status == WorkStatus::kFlushed ||
              completion.status == WorkStatus::kSuccess)
      << ToString(completion.status);
  ExpectEnds(Cause::kRemoteTerminate, Cause::kLocalAccess);
}

void ContractTest::ExpectReadAllowed(const Link& link, RemoteRange from,
                                     const std::vector<std::byte>& bytes) {
  Memory target(*one_, bytes.size());
  const absl::Status posted = one_->Read(link.one, 1, {target.All()}, from);
  EXPECT_TRUE(posted.ok()) << posted;
  ExpectSuccess(*one_, link.one, 1);
  EXPECT_EQ(target.Copy(0, bytes.size()), bytes);
}

void ContractTest::ExpectWriteAllowed(const Link& link, RemoteRange to, size_t length) {
  Memory source(*one_, length);
  source.Fill(0x600d);
  const absl::Status posted = one_->Write(link.one, 1, {source.All()}, to);
  EXPECT_TRUE(posted.ok()) << posted;
  ExpectSuccess(*one_, link.one, 1);
}

Completion ContractTest::NextCompletion(Endpoint& endpoint, QueuePairId queue_pair) {
  const auto find = [&] {
    return std::find_if(
        endpoint.completions.begin(), endpoint.completions.end(),
        [&](const Completion& completion) { return completion.queue_pair == queue_pair; });
  };
  if (!Pump([&] { return find() != endpoint.completions.end(); })) {
    ADD_FAILURE() << "no completion came";
    return {.work_id = UINT64_MAX, .status = WorkStatus::kTransport};
  }
  const auto found = find();
  const Completion completion = *found;
  endpoint.completions.erase(found);
  return completion;
}

RendezvousEvent ContractTest::NextEvent(Endpoint& endpoint, RendezvousType type) {
  const auto find = [&] {
    return std::find_if(endpoint.events.begin(), endpoint.events.end(),
                        [&](const RendezvousEvent& event) { return event.type == type; });
  };
  if (!Pump([&] { return find() != endpoint.events.end(); })) {
    ADD_FAILURE() << "no rendezvous event of type " << static_cast<int>(type) << " came";
    for (const RendezvousEvent& event : endpoint.events) {
      ADD_FAILURE() << "but type " << static_cast<int>(event.type) << ", " << ToString(event.cause)
                    << ": " << event.detail;
    }
    return {};
  }
  const auto found = find();
  RendezvousEvent event = *found;
  endpoint.events.erase(found);
  return event;
}

void ContractTest::ExpectSuccess(Endpoint& endpoint, QueuePairId queue_pair, uint64_t id) {
  const Completion completion = NextCompletion(endpoint, queue_pair);
  EXPECT_EQ(completion.work_id, id);
  EXPECT_EQ(completion.status, WorkStatus::kSuccess) << ToString(completion.status);
}

Cause ContractTest::AsTold(Cause cause, Cause told) const {
  if (tells_why_) return cause;
  if (cause == Cause::kRemoteTerminate) {
    const bool lost = told == Cause::kPeerDisconnect || told == Cause::kPeerReset;
    return keeps_terminate_ && lost ? told : cause;
  }
  const bool may_be_untold =
      cause == Cause::kPeerReset || cause == Cause::kLocalAccess || cause == Cause::kProtocol;
  return may_be_untold && told == Cause::kPeerDisconnect ? told : cause;
}

WorkStatus ContractTest::AsTold(WorkStatus status, WorkStatus told) const {
  const bool untold = status == WorkStatus::kRemoteAccess && told == WorkStatus::kFlushed;
  return keeps_terminate_ && untold ? told : status;
}

void ContractTest::ExpectEnds(Cause one, Cause two) {
  const RendezvousEvent at_one = NextEvent(*one_, RendezvousType::kDisconnected);
  EXPECT_EQ(at_one.cause, AsTold(one, at_one.cause)) << at_one.detail;
  const RendezvousEvent at_two = NextEvent(*two_, RendezvousType::kDisconnected);
  EXPECT_EQ(at_two.cause, AsTold(two, at_two.cause)) << at_two.detail;
}

std::vector<Completion> ContractTest::CompletionsUntilEnd(Endpoint& endpoint,
                                                          QueuePairId queue_pair, Cause cause) {
  const RendezvousEvent end = NextEvent(endpoint, RendezvousType::kDisconnected);
  EXPECT_EQ(end.queue_pair, queue_pair);
  EXPECT_EQ(end.cause, AsTold(cause, end.cause)) << end.detail;
  std::vector<Completion> completions;
  std::copy_if(endpoint.completions.begin(), endpoint.completions.end(),
               std::back_inserter(completions),
               [&](const Completion& completion) { return completion.queue_pair == queue_pair; });
  std::erase_if(endpoint.completions,
                [&](const Completion& completion) { return completion.queue_pair == queue_pair; });
  return completions;
}

size_t ContractTest::CountEvents(const Endpoint& endpoint, RendezvousType type) const {
  return static_cast<size_t>(
      std::count_if(endpoint.events.begin(), endpoint.events.end(),
                    [&](const RendezvousEvent& event) { return event.type == type; }));
}

bool ContractTest::IsReadable(const Endpoint& endpoint) const {
  pollfd descriptor{endpoint->fd(), POLLIN, 0};
  return poll(&descriptor, 1, 0) == 1;
}

}  // namespace esdp::fabric
