#ifndef ESDP_TOOLS_ESDP_SERVE_DOWNLOAD_H_
#define ESDP_TOOLS_ESDP_SERVE_DOWNLOAD_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "tools/esdp_serve/channel.h"
#include "tools/esdp_serve/replies.h"
#include "tools/esdp_serve/whole_digest.h"

namespace esdp_serve {

// A Download is the bytes of one Get: chunk by chunk, each in a slot of its client. A chunk that is
// not summed goes by SendFile, one that is summed is read into the slot first. Where the SHA-256 of the
// whole is asked for, workers make it beside that, and it goes behind the last chunk.
//
//   Owns:     the open file.
//   Threads:  the server's.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   where the file cannot keep what the answer has promised, the rest of the chunk is
//             zeros and its tail says why; kFailed.
class Download {
 public:
  enum class State : uint8_t { kFlows, kEnded, kFailed };

  // `changed` is called when state() or wanted() has changed by itself. It may destroy this.
  Download(std::unique_ptr<OpenedFile> opened, Channel& channel, std::function<void()> changed);

  State state() const { return state_; }
  // For how many bytes it wants a slot now; 0: for none.
  uint64_t wanted() const;
  void OnSlot(uint32_t slot, bool cancelled);
  // The client does not want it any more: what only takes time ends. A slot says so.
  void OnCancel();
  // A SendFile of its own has ended.
  void OnSent(const esdp::Event& event);

 private:
  // A chunk that did not go whole. Nothing behind it goes.
  struct Broken {
    uint32_t slot;
    esdp_files::FileExtent chunk;
    uint64_t gone;  // bytes of it that went
    esdp_files::wire::Status status;
  };

  void SendChunk(uint32_t slot);
  void ReadSummed(uint32_t slot);
  void CheckEnd(uint32_t slot, const esdp_files::FileExtent& chunk);
  void SendTail(uint32_t slot, const esdp_files::FileExtent& chunk,
                esdp_files::wire::Status status);
  void Break(const Broken& broken);
  void MaybeSendFiller();
  void SumNext();
  bool IsSumDue() const;
  void SendSum(uint32_t slot);
  void EndChunks(esdp_files::wire::Status status);
  void DropBehind(uint64_t end, bool last);
  void TellChanged();
  void End(esdp_files::wire::Status status);

  const std::shared_ptr<OpenedFile> opened_;  // jobs that nobody waits for have it, too
  Channel& channel_;
  std::function<void()> changed_;
  State state_ = State::kFlows;
  bool busy_ = false;                        // a worker reads, or looks at the file
  std::deque<esdp_files::FileExtent> sent_;  // by SendFile, and not ended yet
  std::optional<Broken> broken_;
  std::shared_ptr<WholeDigest> digest_;                     // none: not asked for
  bool summed_ = false;                                     // it is done, and no worker is at it
  bool chunks_ended_ = false;                               // the last tail has gone
  std::shared_ptr<bool> alive_ = std::make_shared<bool>();  // for jobs that nobody waits for
  uint64_t dropped_ = 0;  // up to there the page cache was told to forget
};

}  // namespace esdp_serve

#endif  // ESDP_TOOLS_ESDP_SERVE_DOWNLOAD_H_
