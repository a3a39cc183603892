#include "impl/fabric/local/read_puller.h"

#include <algorithm>
#include <array>
#include <utility>

namespace esdp::fabric::local {

ReadPuller::Outcome ReadPuller::Pull(const soft::SendSlot& read, const soft::EntryList& entries,
                                     const WindowTable& windows, PeerProcess& process,
                                     PeerRegions& regions, size_t& budget) {
  if (!window_) {
    const Outcome begun = Begin(read, windows, process, regions);
    if (begun != Outcome::kMore) return begun;
  }
  while (pulled_ != read.length) {
    if (budget == 0) return Outcome::kMore;
    const size_t bytes = window_->region != 0 ? CopySome(read, entries, regions, budget)
                                              : PullSome(read, entries, process, budget);
    if (bytes == 0) {
      window_.reset();
      return Outcome::kAsk;
    }
    budget -= bytes;
    pulled_ += static_cast<uint32_t>(bytes);
  }
  // If the key is withdrawn, or the process is another one, it was not the window that was read.
  const ShownWindow window = *std::exchange(window_, std::nullopt);
  const bool is_true =
      IsStillShown(windows, window, read.remote.key) && (window.region != 0 || process.IsAlive());
  return is_true ? Outcome::kDone : Outcome::kAsk;
}

// The addresses under a window's key begin at 0.
ReadPuller::Outcome ReadPuller::Begin(const soft::SendSlot& read, const WindowTable& windows,
                                      const PeerProcess& process, const PeerRegions& regions) {
  window_ = FindShown(windows, read.remote.key);
  const bool is_inside = window_ && read.length != 0 && read.remote.address <= window_->length &&
                         read.length <= window_->length - read.remote.address;
  const uint64_t region = is_inside ? window_->region : 0;
  const bool has_memory = region != 0 ? regions.Has(region) : process.IsReadable();
  if (!is_inside || !has_memory) {
    window_.reset();
    return is_inside && region != 0 ? Outcome::kNotPassed : Outcome::kAsk;
  }
  place_ = read.place;
  pulled_ = 0;
  return Outcome::kMore;
}

size_t ReadPuller::CopySome(const soft::SendSlot& read, const soft::EntryList& entries,
                            PeerRegions& regions, size_t most) {
  ConstBytes source =
      regions.Find(window_->region, window_->address + read.remote.address + pulled_,
                   std::min<size_t>(most, read.length - pulled_));
  const size_t bytes = source.size();
  while (!source.empty()) {
    const Bytes target = entries.Next(place_, source.size());
    CopyBytes(target, source.first(target.size()));
    source = source.subspan(target.size());
  }
  return bytes;
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
