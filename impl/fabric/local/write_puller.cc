#include "impl/fabric/local/write_puller.h"

#include <algorithm>
#include <span>

namespace esdp::fabric::local {

bool WritePuller::Begin(ConstBytes told, uint32_t length) {
  const size_t count = told.size() / sizeof(WriteSource);
  if (told.size() % sizeof(WriteSource) != 0 || count == 0 || count > kWriteSourcesMax)
    return false;
  CopyBytes(std::as_writable_bytes(std::span(sources_)), told);
  uint64_t left = length;
  reads_process_ = false;
  for (size_t i = 0; i < count; ++i) {
    if (sources_[i].length == 0 || sources_[i].length > left) return false;
    left -= sources_[i].length;
    reads_process_ = reads_process_ || sources_[i].region == 0;
  }
  if (left != 0) return false;
  source_ = offset_ = pulled_ = 0;
  active_ = true;
  return true;
}

WritePuller::Outcome WritePuller::Pull(Bytes rest, PeerProcess& process, PeerRegions& regions,
                                       size_t& budget) {
  while (!rest.empty()) {
    if (budget == 0) return Outcome::kMore;
    const WriteSource& source = sources_[source_];
    size_t bytes = std::min<uint64_t>({source.length - offset_, budget, rest.size()});
    const Outcome outcome = PullSome(rest.first(bytes), process, regions, bytes);
    if (outcome != Outcome::kDone) return outcome;
    budget -= bytes;
    pulled_ += bytes;
    offset_ += bytes;
    rest = rest.subspan(bytes);
    if (offset_ == source.length) ++source_, offset_ = 0;
  }
  // If the process is another one, it was not the writer's memory that was read.
  return !reads_process_ || process.IsAlive() ? Outcome::kDone : Outcome::kFailed;
}

WritePuller::Outcome WritePuller::PullSome(Bytes to, PeerProcess& process, PeerRegions& regions,
                                           size_t& bytes) const {
  const WriteSource& source = sources_[source_];
  if (source.region == 0) {
    bytes = process.Read({&to, 1}, source.address + offset_);
    return bytes == 0 ? Outcome::kFailed : Outcome::kDone;
  }
  if (!regions.Has(source.region)) return Outcome::kNotPassed;
  const ConstBytes found = regions.Find(source.region, source.address + offset_, to.size());
  bytes = found.size();
  if (found.empty()) return Outcome::kFailed;
  CopyBytes(to, found);
  return Outcome::kDone;
}

}  // namespace esdp::fabric::local
