#ifndef ESDP_IMPL_SOCKETS_BLOCKING_BLOCKING_OPTIONS_H_
#define ESDP_IMPL_SOCKETS_BLOCKING_BLOCKING_OPTIONS_H_

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "esdp/socket.h"
#include "esdp/stream.h"
#include "impl/sockets/blocking/signal_rule.h"

namespace esdp::sockets {

inline constexpr size_t kChunksMax = 16;  // StreamOptions::chunks_max at most

// The options of a blocking stream as one call sees them, with what is absent filled in.
struct BlockingOptions {
  uint64_t zero_copy_from = 0;
  bool adapts = false;     // for Writes that is where it starts
  size_t chunk_bytes = 0;  // registered at a time,
  size_t chunks_max = 0;   // and so many of these at once
  size_t send_buffer_bytes = 0;
  absl::Duration patience;
  UrgentBytes urgent = UrgentBytes::kAmongOthers;
  OnSignal on_signal = OnSignal::kEnds;
};

// A device locks what it registers page by page, by a system call, and each chunk costs an advert, a
// READ and its answer besides: there large chunks pay. Elsewhere a chunk costs next to nothing, and
// small ones stay in the cache. One call has 1 MiB registered at most either way.
inline BlockingOptions OptionsInForce(const StreamOptions& given, Transport transport,
                                      absl::Time deadline) {
  const bool device = transport == Transport::kVerbs;
  return {
      .zero_copy_from = given.zcopy_min.value_or(device ? 512 * 1024 : kDefaultThreshold),
      .adapts = !given.zcopy_min && transport != Transport::kQpip,
      .chunk_bytes = given.chunk_bytes.value_or(device ? 512 * 1024 : 256 * 1024),
      .chunks_max = given.chunks_max.value_or(device ? 2 : 4),
      .send_buffer_bytes = given.send_buffer_bytes,
      .patience = given.patience,
      .urgent = given.urgent,
      .on_signal = SignalRule(given.restart_on_signal, deadline),
  };
}

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_BLOCKING_BLOCKING_OPTIONS_H_
