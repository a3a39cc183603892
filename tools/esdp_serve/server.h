#ifndef ESDP_TOOLS_ESDP_SERVE_SERVER_H_
#define ESDP_TOOLS_ESDP_SERVE_SERVER_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "esdp/context.h"
#include "tools/esdp_serve/metrics.h"
#include "tools/esdp_serve/options.h"
#include "tools/esdp_serve/session.h"

namespace esdp_serve {

// A Server takes clients, and gives each its share.
//
//   Owns:     the listener, and a Session for each client.
//   Threads:  Run on one; Stop from any.
//   Blocks:   Run, until it was stopped and what flowed has gone.
//   Units:    -
//   Errors:   Open: the root, the address or the fabric cannot be had. Run: the listener failed.
class Server {
 public:
  static absl::StatusOr<std::unique_ptr<Server>> Open(const Options& options, Metrics& metrics);

  ~Server();

  esdp::Address address() const { return listener_.local(); }
  absl::Status Run();
  // The first time: no further clients and requests, and what flows has the grace. Then at once.
  void Stop();

 private:
  explicit Server(const Options& options);
  absl::Status Start(Metrics& metrics);
  absl::Status Listen();
  void TakeEvents();
  void OnEvent(const esdp::Event& event);
  void OnAccept(const esdp::Event& event);
  void GiveSlots();
  void Tick();
  void BeginToStop();
  void DropEnded();

  Options options_;
  esdp::Context context_;
  esdp::EventQueue queue_;
  std::array<esdp::Event, 64> events_;  // kept: to make them anew takes longer than a turn
  std::optional<esdp_files::Root> root_;
  std::optional<Slots> slots_;
  std::optional<Shares> shares_;
  FileCache files_;
  std::optional<Workers> workers_;
  std::optional<Services> services_;
  esdp::Socket listener_;
  absl::Status accepting_;
  std::unordered_map<uint32_t, std::unique_ptr<Session>> sessions_;
  uint32_t next_id_ = 1;
  absl::Time next_tick_;
  std::atomic<int> stops_{0};  // asked
  int stopped_ = 0;            // done
  absl::Time stop_by_ = absl::InfiniteFuture();
};

}  // namespace esdp_serve

#endif  // ESDP_TOOLS_ESDP_SERVE_SERVER_H_
