#ifndef ESDP_IMPL_PROVIDER_WIRE_TRACE_H_
#define ESDP_IMPL_PROVIDER_WIRE_TRACE_H_

#include <cstddef>
#include <string>

#include "impl/base/trace.h"
#include "impl/provider/wire_tap.h"

namespace esdp::provider {

// Keeps the last messages of a shard, to be read as text.
//
//   Owns:     its records.
//   Threads:  Text only by the holder of the shard lock, or when the shard has gone.
//   Blocks:   never; allocates at construction, and in Text.
//   Units:    records_max counts messages.
//   Errors:   the oldest message makes room for the newest.
class WireTrace final : public WireTap {
 public:
  explicit WireTrace(size_t records_max) : trace_(records_max) {}

  void OnMessage(const WireMessage& message) override;

  // A line for each: "12.000345678 sent Data connection=4294967297 mseq=5 bufs=3 payload=64".
  std::string Text() const { return trace_.Text(); }

 private:
  Trace trace_;
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_WIRE_TRACE_H_
