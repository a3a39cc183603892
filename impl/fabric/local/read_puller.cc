#include "impl/fabric/local/read_puller.h"

#include <algorithm>
#include <array>
#include <utility>

namespace esdp::fabric::local {

ReadPuller::Outcome ReadPuller::Pull(const soft::SendSlot& read, const soft::EntryList& entries,
                                     const WindowTable& windows, PeerProcess& process,
                                     size_t& budget) {
  if (!window_ && (!process.IsReadable() || Begin(read, windows) == Outcome::kAsk)) {
    return Outcome::kAsk;
  }
  while (pulled_ != read.length) {
    if (budget == 0) return Outcome::kMore;
    const size_t bytes = PullSome(read, entries, process, budget);
    if (bytes == 0) {
      window_.reset();
      return Outcome::kAsk;
    }
    budget -= bytes;
    pulled_ += static_cast<uint32_t>(bytes);
  }
  // If the key is withdrawn, or the process is another one, it was not the window that was read.
  const ShownWindow window = *std::exchange(window_, std::nullopt);
  const bool is_true = IsStillShown(windows, window, read.remote.key) && process.IsAlive();
  return is_true ? Outcome::kDone : Outcome::kAsk;
}

// The addresses under a window's key begin at 0.
ReadPuller::Outcome ReadPuller::Begin(const soft::SendSlot& read, const WindowTable& windows) {
  window_ = FindShown(windows, read.remote.key);
  const bool is_inside = window_ && read.length != 0 && read.remote.address <= window_->length &&
                         read.length <= window_->length - read.remote.address;
  if (!is_inside) {
    window_.reset();
    return Outcome::kAsk;
  }
  place_ = read.place;
  pulled_ = 0;
  return Outcome::kMore;
}

size_t ReadPuller::PullSome(const soft::SendSlot& read, const soft::EntryList& entries,
                            PeerProcess& process, size_t most) {
  std::array<Bytes, PeerProcess::kTargetsMax> targets;
  size_t count = 0;
  size_t left = std::min<size_t>(most, read.length - pulled_);
  soft::Place place = place_;
  for (; count < targets.size() && left != 0; ++count) {
    targets[count] = entries.Next(place, left);
    left -= targets[count].size();
  }
  const size_t bytes =
      process.Read({targets.data(), count}, window_->address + read.remote.address + pulled_);
  entries.Skip(place_, bytes);
  return bytes;
}

}  // namespace esdp::fabric::local
