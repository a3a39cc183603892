#ifndef ESDP_TOOLS_ESDP_SERVE_CHANNEL_H_
#define ESDP_TOOLS_ESDP_SERVE_CHANNEL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "esdp/context.h"
#include "tools/esdp_files/root.h"
#include "tools/esdp_serve/file_cache.h"
#include "tools/esdp_serve/metrics.h"
#include "tools/esdp_serve/options.h"
#include "tools/esdp_serve/shares.h"
#include "tools/esdp_serve/slots.h"
#include "tools/esdp_serve/workers.h"

namespace esdp_serve {

// What all clients are served with.
struct Services {
  esdp::Context& context;
  esdp::EventQueue& queue;
  Slots& slots;
  Shares& shares;
  Workers& workers;
  FileCache& files;
  const esdp_files::Root& root;
  Metrics& metrics;
  const Options& options;
};

// A Channel is the connection of one client, and the slots that hold something for it.
//
//   Owns:     the connection; the slots, from OnSlot of its user to Release.
//   Threads:  the server's.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   a post that fails, and an event that says that the connection has ended, close it.
class Channel {
 public:
  // No slot: of receives and of the end.
  static constexpr uint32_t kNoSlot = ~uint32_t{0};

  Channel(uint32_t id, esdp::Socket socket, Services& services);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  Services& services() { return services_; }
  static uint32_t ClientOf(const esdp::Event& event) {
    return static_cast<uint32_t>(event.cookie >> 32);
  }
  static uint32_t SlotOf(const esdp::Event& event) { return static_cast<uint32_t>(event.cookie); }

  // The client asks for so many shares: it gets no more than the server gives it. 0: all of those.
  void AskShares(uint32_t shares);
  // Asks for a slot, unless it has asked already.
  void Want(uint64_t bytes);
  void TakeSlot();  // it is there
  // The slot is the next one's.
  void Release(uint32_t slot);

  // The slot's memory goes out; its event comes back with the slot. Where it cannot, the channel
  // closes.
  void Send(uint32_t slot, std::span<const esdp::Slice> slices);
  // False where the file cannot be sent; the slot is still the caller's.
  bool SendFile(uint32_t slot, const esdp::FilePlan& plan);
  void Receive(std::span<std::byte> bytes, esdp::RecvFlags flags = esdp::RecvFlags::kNone);
  // False where it cannot be received: then the channel closes.
  bool ReceiveFile(const esdp::FileSink& sink);

  // `work` on another thread, then `done` on this one. Who calls outlives it: see over().
  void Run(std::function<void()> work, std::function<void()> done);

  // Nothing more is sent.
  void Shutdown();
  void Close(esdp::CloseMode mode);
  void OnClosed() { closed_ = true; }
  bool closing() const { return closing_; }
  bool wants_slot() const { return wants_slot_; }
  bool holds_slots() const { return held_ > 0; }
  // Nothing comes any more: no event, no slot, no job.
  bool over() const { return closed_ && held_ == 0 && jobs_ == 0; }

 private:
  esdp::OpArgs Args(uint32_t slot) const;

  uint32_t id_;
  esdp::Socket socket_;
  Services& services_;
  uint32_t weight_;  // its shares
  bool wants_slot_ = false;
  bool closing_ = false;
  bool closed_ = false;
  uint32_t held_ = 0;
  uint32_t jobs_ = 0;
};

}  // namespace esdp_serve

#endif  // ESDP_TOOLS_ESDP_SERVE_CHANNEL_H_
