#ifndef ESDP_IMPL_FABRIC_LOCAL_CHANNEL_H_
#define ESDP_IMPL_FABRIC_LOCAL_CHANNEL_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "impl/base/shared_memory.h"
#include "impl/fabric/local/layout.h"
#include "impl/fabric/local/peer_process.h"
#include "impl/fabric/local/peer_regions.h"
#include "impl/fabric/local/shared_bell.h"
#include "impl/fabric/local/shared_regions.h"
#include "impl/fabric/local/slot_reader.h"
#include "impl/fabric/local/slot_writer.h"

namespace esdp::fabric::local {

// Behind so much the peer is told at once: it may go on while this side looks at what follows.
inline constexpr size_t kLongMessage = 8192;

// What an end says of itself.
struct PeerEnd {
  EndReason reason = EndReason::kNone;
  uint64_t refused_read = 0;  // kAccess: the n-th one, from 1; 0: it was no read
};

struct RegionMessage;

// The two blocks of a queue pair, the socket that both ends hold as long as they live, and who has
// to be woken. A block is never taken back while the other end may read it: the one that outlives
// the other still has what was published.
//
//   Owns:     the socket, our block, the mapping of the other.
//   Threads:  not thread-safe.
//   Blocks:   never.
//   Units:    –
//   Errors:   nothing that the other end does is more than an end of the connection.
class Channel {
 public:
  // `socket` is connected; `peers_block` came through it; `bell` is that of all channels to the
  // same fabric. PermissionDenied where the block is none; a failure leaves the others where they
  // are.
  static absl::StatusOr<std::unique_ptr<Channel>> Make(Descriptor&& socket, Mapping&& own,
                                                       const Descriptor& peers_block,
                                                       std::shared_ptr<SharedBell> bell);
  ~Channel() { bell_->Forget(peer_.armed); }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  // A block for one end, all zeros.
  static absl::StatusOr<WritableMemory> MakeBlock();

  int socket() const { return socket_.number(); }
  SlotWriter& writer() { return writer_; }
  SlotReader& reader() { return reader_; }

  // Shows what the writer has put, and wakes the other end if it sleeps.
  void Publish();
  // The same, but only for one that sleeps by all appearances: who is awake finds the slots as soon
  // as they are put, and need not be told before the last of them. It spares waiting until all that
  // was copied can be seen.
  void PublishToSleeper();
  // Gives back what the reader has taken, and wakes the other end if that is what it waits for.
  void GiveBack();
  // Whether we wait for the other end to give something back. True: we do, and did not before.
  bool SetStarved(bool starved);

  // From now on the other end wakes us when it does something. True: it has done it already.
  // Slots that we leave where they are do not count. `any_bell`: whatever channel we are woken by,
  // we disarm that one and then look at this one, too.
  bool Arm(bool leaves_slots, bool any_bell);
  // It need not. Whatever has moved, or whoever was woken, disarms before it arms again: an end is
  // woken once for each Arm.
  void Disarm();
  bool is_armed() const { return armed_ % 2 != 0; }
  bool takes_any_bell() const { return (armed_ & kAnyBell) != 0; }

  // What the peer said last of its end; looked at before its slots, what it has published before
  // that is there.
  PeerEnd peer_end() const;
  // Says why this end is over, which nobody wakes any more. Whatever was put before is published.
  void TellEnd(EndReason reason, uint64_t refused_read);

  // Tells what has been read in the memory of the other end's process.
  void Prove(const Nonce& nonce);
  // Whether the other end has told what stands in ours: it may be shown windows.
  bool IsProved(const Nonce& nonce) const;
  WindowTable& windows() { return own_.windows; }
  const WindowTable& peers_windows() const { return peer_.windows; }

  // Lets windows name this region of ours. False: the other end does not have its file.
  bool Pass(const SharedRegion& region);
  // It is no more: the other end may unmap it.
  void TakeBack(uint64_t region);
  PeerRegions& peers_regions() { return peers_regions_; }

  // Takes the files that have been sent by now, or the word that has woken us, where the system has
  // said since the last time that the socket is readable. False: the other end is gone.
  bool DrainSocket(bool is_readable);
  // What it has published is still read.
  bool IsRead() const { return reader_.keeps(); }
  // It has said what cannot be.
  bool IsBroken() const { return socket_broken_ || writer_.broken() || reader_.broken(); }

 private:
  friend class LeftChannels;

  Channel(Descriptor socket, Mapping own, Mapping peers, std::shared_ptr<SharedBell> bell);
  void TellArmed(uint64_t armed);
  bool IsToBeWoken(uint64_t peers_armed) const {
    return peers_armed % 2 != 0 && peers_armed != woken_;
  }
  void Wake();
  bool SendAbout(const RegionMessage& message, const Descriptor* file);
  bool TakeWord();
  bool TakeMessage(ConstBytes bytes, const Descriptor& file);

  // A region of ours that the other end has, and how long its file is.
  struct Passed {
    uint64_t number = 0;
    uint64_t bytes = 0;
  };
  std::vector<Passed>::iterator FindPassed(uint64_t region);

  Descriptor socket_;
  Mapping own_memory_;
  Mapping peers_memory_;
  Block& own_;
  const Block& peer_;
  SlotWriter writer_;
  SlotReader reader_;
  PeerRegions peers_regions_;
  const std::shared_ptr<SharedBell> bell_;
  std::vector<Passed> passed_;  // the one that was used last in front
  uint64_t messages_sent_ = 0;
  uint64_t messages_taken_ = 0;
  bool socket_broken_ = false;
  uint64_t armed_ = 0;
  bool starved_ = false;
  std::unique_ptr<Channel> next_;  // LeftChannels
  uint64_t woken_ = 0;             // the last Arm of the other end's that it was woken for
};

}  // namespace esdp::fabric::local

#endif  // ESDP_IMPL_FABRIC_LOCAL_CHANNEL_H_
