#ifndef ESDP_TOOLS_ESDP_SERVE_UPLOAD_H_
#define ESDP_TOOLS_ESDP_SERVE_UPLOAD_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "tools/esdp_serve/channel.h"
#include "tools/esdp_serve/put_file.h"

namespace esdp_serve {

// An Upload is the bytes of one Put: RecvFile chunk by chunk, each with its tail, a few posted ahead.
//
//   Owns:     the file on its way in.
//   Threads:  the server's; workers settle, sync and rename.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   status(), once it is over().
class Upload {
 public:
  // `changed` is called when over() has changed by itself. It may destroy this.
  Upload(std::unique_ptr<PutFile> file, const esdp_files::wire::Put& put, Channel& channel,
         std::function<void()> changed);

  void Start();
  // A receive of its own has ended.
  void OnReceived(const esdp::Event& event);
  bool over() const { return over_; }
  // Whether the next receive that ends is one of its own.
  bool has_posted() const { return outstanding_ > 0; }
  const absl::Status& status() const { return status_; }

 private:
  static constexpr size_t kAhead = 4;
  using TailBytes = std::array<std::byte, esdp_files::kTailBytes>;

  bool IsSyncDue() const { return IsSynced(next_tail_); }
  bool IsSynced(uint64_t chunk) const;
  void PostAhead();
  void OnTail();
  void SettleNext();
  void MaybeFinish();
  void EndWell();
  void End(const absl::Status& status);
  void LoseAll(const absl::Status& reason);
  void RemovePart();
  void RunStep(std::function<absl::Status()> work, void (Upload::*then)());

  std::unique_ptr<PutFile> file_;
  bool with_crc_;
  bool syncs_on_the_way_;
  Channel& channel_;
  std::function<void()> changed_;
  esdp_files::Chunks chunks_;
  std::deque<esdp_files::FileExtent> posted_;
  std::array<TailBytes, kAhead> tails_{};
  uint64_t next_tail_ = 0;  // to be posted
  uint64_t taken_tails_ = 0;
  uint64_t taken_files_ = 0;
  std::deque<std::pair<esdp_files::FileExtent, std::optional<uint32_t>>> unsettled_;
  uint32_t outstanding_ = 0;  // receives
  bool busy_ = false;         // a worker is at the file
  bool over_ = false;
  absl::Status lost_;  // why nothing of it may stay
  absl::Status status_;
};

}  // namespace esdp_serve

#endif  // ESDP_TOOLS_ESDP_SERVE_UPLOAD_H_
