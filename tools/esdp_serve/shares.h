#ifndef ESDP_TOOLS_ESDP_SERVE_SHARES_H_
#define ESDP_TOOLS_ESDP_SERVE_SHARES_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "absl/time/time.h"

namespace esdp_serve {

// Shares divides slots among clients, by deficit round robin: each round every client that wants one
// may send a quantum of bytes for each of its shares. A client that does not give its slots back
// keeps those and gets no further ones, so that it costs the others nothing else.
//
//   Owns:     numbers: which slots they are is the caller's to know.
//   Threads:  one.
//   Blocks:   never. The time comes in.
//   Units:    slots; bytes.
//   Errors:   -
class Shares {
 public:
  struct Limits {
    uint32_t slots = 64;  // in all
    uint32_t slots_per_client = 4;
    uint64_t quantum = uint64_t{1} << 20;
    // Where slots are short, who has moved none for so long gets one at a time.
    absl::Duration slow_after = absl::Seconds(5);
  };
  explicit Shares(const Limits& limits) : limits_(limits), free_(limits.slots) {}

  // One slot for so many bytes. Once for each client, until Next has named it. `weight`: its shares.
  void Want(uint32_t client, uint64_t bytes, uint32_t weight = 1);
  void Forget(uint32_t client);  // wants nothing any more; what it holds stays its own
  // Whom to give a slot now: it holds one more.
  std::optional<uint32_t> Next(absl::Time now);
  // The client has moved what was in one of its slots.
  void Return(uint32_t client, absl::Time now);

  bool Short() const { return free_ == 0; }
  uint32_t held(uint32_t client) const;
  uint32_t free_slots() const { return free_; }
  // Those that hold a slot, and have moved none for so long.
  std::vector<uint32_t> Stalled(absl::Duration since, absl::Time now) const;

 private:
  struct Client {
    uint64_t deficit = 0;
    uint64_t wanted = 0;  // bytes; 0: nothing
    uint64_t quantum = 0;
    uint32_t held = 0;
    absl::Time moved = absl::InfinitePast();  // the last time
  };
  bool MayHaveMore(const Client& client, absl::Time now) const;
  void DropIfIdle(uint32_t client);

  Limits limits_;
  uint32_t free_;
  std::unordered_map<uint32_t, Client> clients_;
  std::deque<uint32_t> turns_;  // of those that want a slot
};

}  // namespace esdp_serve

#endif  // ESDP_TOOLS_ESDP_SERVE_SHARES_H_
