#ifndef ESDP_TOOLS_ESDP_PERF_CHANNEL_H_
#define ESDP_TOOLS_ESDP_PERF_CHANNEL_H_

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/esdp_perf/fields.h"
#include "tools/esdp_perf/station.h"

namespace esdp_perf {

// Where the two sides agree on a run and exchange what they saw: messages of fields, each behind
// its length in eight decimal digits.
//
//   Owns:    one connection. The Station stays the caller's and must outlive it.
//   Blocks:  every call.
class Channel {
 public:
  static absl::StatusOr<std::unique_ptr<Channel>> Over(Station& station, esdp::Socket socket);

  absl::Status Send(const Fields& fields);
  // Aborted with the peer's words if it sent a field "error".
  absl::StatusOr<Fields> Receive();
  // A message that is one word.
  absl::Status Say(const char* word);
  // Tells the peer why there will be no run.
  void SendError(const absl::Status& status);
  // Both sides have said all: what was sent still reaches the peer.
  absl::Status Close();

  const esdp::Socket& socket() const { return socket_; }

 private:
  static constexpr size_t kHeadBytes = 8;
  static constexpr size_t kMessageMax = 16 * 1024;

  Channel(Station& station, esdp::Socket socket)
      : station_(station), memory_(kMessageMax), socket_(std::move(socket)) {}
  // Into the start of the memory.
  absl::Status ReceiveExactly(size_t length);

  Station& station_;
  std::vector<std::byte> memory_;
  esdp::Region region_;
  esdp::Socket socket_;
};

}  // namespace esdp_perf

#endif  // ESDP_TOOLS_ESDP_PERF_CHANNEL_H_
