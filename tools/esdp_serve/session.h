#ifndef ESDP_TOOLS_ESDP_SERVE_SESSION_H_
#define ESDP_TOOLS_ESDP_SERVE_SESSION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "tools/esdp_serve/channel.h"
#include "tools/esdp_serve/download.h"
#include "tools/esdp_serve/replies.h"
#include "tools/esdp_serve/request_queue.h"
#include "tools/esdp_serve/upload.h"

namespace esdp_serve {

// A Session is one client: it reads what the client asks, and sends what it gets, in order. What is
// to be sent waits for a slot first, so that a client that takes nothing gets no further ones.
//
//   Owns:     the connection, and what of the client is under way.
//   Threads:  the server's.
//   Blocks:   never: workers wait for the file system.
//   Units:    bytes.
//   Errors:   what a client does wrong ends its connection, behind an answer that says why.
class Session {
 public:
  // One that is not welcome is told so when it has said Hello.
  Session(uint32_t id, esdp::Socket socket, bool welcome, Services& services);

  void OnEvent(const esdp::Event& event);
  void OnSlot(uint32_t slot);
  // Ends it where the client has asked nothing for too long.
  void OnTick(absl::Time now);
  // Ends it when what flows has gone. Further requests are refused.
  void Stop();
  void Abort() { channel_.Close(esdp::CloseMode::kAbort); }
  bool over() const { return channel_.over(); }

 private:
  void Advance();
  void MaybeReceive();
  void OnReceived(const esdp::Event& event);
  void Begin(uint32_t slot);
  bool ReplyFromCache(uint32_t slot);
  void OnReply(uint32_t slot, Reply reply);
  void OnDownloadMoved();
  void BeginToWrite(uint32_t slot);
  void BeginMakeFolder(uint32_t slot);
  void BeginPut(uint32_t slot);
  void OnPutOpened(uint32_t slot, absl::StatusOr<PutFile> file);
  void EndPut(uint32_t slot);
  void Say(uint32_t slot, const esdp_files::wire::Answer& answer);
  void Refuse(uint32_t slot, const absl::Status& status);
  void BeginToEnd();
  void Count(const Reply& reply);

  static constexpr size_t kReceiveBytes = 8192;

  Channel channel_;
  Services& services_;
  bool welcome_;
  RequestQueue queue_;
  std::optional<Download> download_;  // of the first request, once its answer is out
  std::optional<Upload> upload_;
  std::array<std::byte, kReceiveBytes> received_;
  bool receiving_ = false;
  bool replying_ = false;  // a worker is at the first request
  bool stops_ = false;
  bool peer_ended_ = false;
  bool ends_ = false;  // nothing more is sent; the client is to read what was, and to go
  absl::Time heard_;   // from the client, or begun with it, the last time
};

}  // namespace esdp_serve

#endif  // ESDP_TOOLS_ESDP_SERVE_SESSION_H_
