#include "impl/fabric/local/channel.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <utility>

#include "impl/base/status.h"
#include "impl/fabric/local/socket_message.h"

namespace esdp::fabric::local {
namespace {

// Of a block: its words and slots. The ring's pages come with the first bytes in them.
constexpr size_t kResident = offsetof(Block, ring);
constexpr uint32_t kReasonBits = 8;
constexpr size_t kWordBytes = 1;  // of what wakes the other end

}  // namespace

// About a region of the sender's.
struct RegionMessage {
  enum Kind : uint64_t {
    kPassed = 1,  // its file comes with the message
    kTakenBack,   // it is no more
  };
  uint64_t kind = 0;
  uint64_t number = 0;
  uint64_t length = 0;  // of the file
};

absl::StatusOr<WritableMemory> Channel::MakeBlock() {
  return MakeWritableMemory(sizeof(Block), kResident);
}

absl::StatusOr<std::unique_ptr<Channel>> Channel::Make(Descriptor&& socket, Mapping&& own,
                                                       const Descriptor& peers_block,
                                                       std::shared_ptr<SharedBell> bell) {
  ESDP_ASSIGN_OR_RETURN(Mapping peers, MapReadOnly(peers_block, sizeof(Block), kResident));
  return std::unique_ptr<Channel>(
      new Channel(std::move(socket), std::move(own), std::move(peers), std::move(bell)));
}

Channel::Channel(Descriptor socket, Mapping own, Mapping peers, std::shared_ptr<SharedBell> bell)
    : socket_(std::move(socket)),
      own_memory_(std::move(own)),
      peers_memory_(std::move(peers)),
      own_(*reinterpret_cast<Block*>(own_memory_.base())),
      peer_(*reinterpret_cast<const Block*>(peers_memory_.base())),
      writer_(own_, peer_),
      reader_(peer_, own_),
      bell_(std::move(bell)) {}

void Channel::Publish() {
  writer_.Publish();
  Wake();
}

void Channel::PublishToSleeper() {
  if (IsToBeWoken(peer_.armed.load(std::memory_order_relaxed))) Publish();
}

void Channel::GiveBack() {
  reader_.Tell();
  if (peer_.starved.load(std::memory_order_seq_cst) != 0) Wake();
}

bool Channel::SetStarved(bool starved) {
  if (starved == starved_) return false;
  starved_ = starved;
  own_.starved.store(starved ? 1 : 0, std::memory_order_seq_cst);
  return starved;
}

// Sequentially consistent on both sides: either the other end's load in Wake sees that we are
// armed, or our looks here see what it has published before.
bool Channel::Arm(bool leaves_slots, bool any_bell) {
  const uint64_t next = (armed_ & ~kAnyBell) + (is_armed() ? 2 : 1);
  TellArmed(any_bell ? next | kAnyBell : next);
  return (!leaves_slots && reader_.HasMore()) || (starved_ && writer_.Refresh()) ||
         peer_end().reason != EndReason::kNone;
}

void Channel::Disarm() {
  if (is_armed()) TellArmed((armed_ & ~kAnyBell) + 1);
}

void Channel::TellArmed(uint64_t armed) {
  armed_ = armed;
  own_.armed.store(armed, std::memory_order_seq_cst);
}

PeerEnd Channel::peer_end() const {
  const uint64_t word = peer_.end.load(std::memory_order_seq_cst);
  const uint64_t reason = word & ((uint64_t{1} << kReasonBits) - 1);
  if (reason > static_cast<uint64_t>(EndReason::kProtocol)) return {EndReason::kReset, 0};
  return {static_cast<EndReason>(reason), word >> kReasonBits};
}

void Channel::TellEnd(EndReason reason, uint64_t refused_read) {
  own_.end.store(static_cast<uint64_t>(reason) | refused_read << kReasonBits,
                 std::memory_order_seq_cst);
  Disarm();
  Publish();
}

// A socket that is full has woken the other end long ago; one that is broken is seen as its end,
// and wakes nobody else.
void Channel::Wake() {
  const uint64_t armed = peer_.armed.load(std::memory_order_seq_cst);
  if (!IsToBeWoken(armed)) return;
  if ((armed & kAnyBell) != 0 && bell_->IsRinging()) return;
  woken_ = armed;
  constexpr char kWord = 0;
  const ssize_t sent = send(socket_.number(), &kWord, kWordBytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent == kWordBytes) bell_->OnRung(peer_.armed, armed);
}

void Channel::Prove(const Nonce& nonce) {
  for (size_t i = 0; i < nonce.size(); ++i) own_.proof[i].store(nonce[i]);
}

bool Channel::IsProved(const Nonce& nonce) const {
  return peer_.proof[0].load() == nonce[0] && peer_.proof[1].load() == nonce[1];
}

std::vector<Channel::Passed>::iterator Channel::FindPassed(uint64_t region) {
  return std::ranges::find(passed_, region, &Passed::number);
}

// What the other end would not map is not passed: it is told of each use where the bytes lie, and
// could not have them.
bool Channel::Pass(const SharedRegion& region) {
  if (const auto found = FindPassed(region.number); found != passed_.end()) {
    std::iter_swap(passed_.begin(), found);
    return true;
  }
  uint64_t room = PeerRegions::kBytesMax;
  for (const Passed& passed : passed_) room -= passed.bytes;
  if (passed_.size() >= PeerRegions::kRegionsMax || region.file_bytes > room) return false;
  const RegionMessage message{
      .kind = RegionMessage::kPassed, .number = region.number, .length = region.file_bytes};
  try {
    passed_.reserve(passed_.size() + 1);
  } catch (const std::bad_alloc&) {
    return false;
  }
  if (!SendAbout(message, &region.file)) return false;
  passed_.push_back({region.number, region.file_bytes});
  return true;
}

// Where the socket is full the other end keeps its mapping until the connection ends, and counts it.
void Channel::TakeBack(uint64_t region) {
  const auto found = FindPassed(region);
  if (found == passed_.end()) return;
  const RegionMessage message{.kind = RegionMessage::kTakenBack, .number = region, .length = 0};
  if (SendAbout(message, nullptr)) passed_.erase(found);
}

// Told before, so that who is told of none need not look for files: that takes a system call more.
bool Channel::SendAbout(const RegionMessage& message, const Descriptor* file) {
  own_.messages.store(++messages_sent_);
  if (SendMessage(socket_.number(), std::as_bytes(std::span(&message, 1)), file)) return true;
  own_.messages.store(--messages_sent_);
  return false;
}

// False: it is none that could be.
bool Channel::TakeMessage(ConstBytes bytes, const Descriptor& file) {
  if (bytes.size() == kWordBytes && !file.is_open()) return true;
  ++messages_taken_;
  RegionMessage message;
  if (bytes.size() != sizeof(message)) return false;
  CopyBytes(std::as_writable_bytes(std::span(&message, 1)), bytes);
  switch (message.kind) {
    case RegionMessage::kPassed:
      return file.is_open() && message.number != 0 &&
             peers_regions_.Add(message.number, message.length, file);
    case RegionMessage::kTakenBack:
      return !file.is_open() && peers_regions_.Remove(message.number);
  }
  return false;
}

// It is what the socket is readable for: a file would have been told of. There is no second word
// before we have armed once more.
bool Channel::TakeWord() {
  std::array<std::byte, kWordBytes + 1> bytes;
  const ssize_t length = recv(socket_.number(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (length < 0) return errno == EAGAIN || errno == EINTR;
  socket_broken_ = length > static_cast<ssize_t>(kWordBytes);
  return length != 0;
}

bool Channel::DrainSocket(bool is_readable) {
  if (peer_.messages.load() == messages_taken_) return !is_readable || TakeWord();
  constexpr int kMost = 64;
  for (int i = 0; i < kMost && !socket_broken_; ++i) {
    std::array<std::byte, sizeof(RegionMessage)> bytes;
    size_t length = 0;
    Descriptor file;
    switch (ReceiveMessage(socket_.number(), bytes, length, file)) {
      case MessageOutcome::kNone:
        return true;
      case MessageOutcome::kGone:
        return false;
      case MessageOutcome::kMalformed:
        socket_broken_ = true;
        break;
      case MessageOutcome::kDone:
        socket_broken_ = !TakeMessage(ConstBytes(bytes).first(length), file);
        break;
    }
  }
  return true;
}

}  // namespace esdp::fabric::local
