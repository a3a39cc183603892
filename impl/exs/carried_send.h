#ifndef ESDP_IMPL_EXS_CARRIED_SEND_H_
#define ESDP_IMPL_EXS_CARRIED_SEND_H_

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "esdp/region.h"
#include "impl/exs/carried.h"

namespace esdp::exs {

// A send in pieces. Memory that nobody registered is registered piece by piece, while those before
// are sent, or copied where that fails. Files are read into two pieces of registered memory, of
// which one is filled while the other is sent.
//
//   Owns:     its parts and pieces.
//   Threads:  as Carried.
//   Blocks:   as Carried.
//   Units:    bytes.
//   Errors:   an errno in the end.
class CarriedSend final : public Carried, public std::enable_shared_from_this<CarriedSend> {
 public:
  CarriedSend(const Place& place, Transfer transfer, Done done);
  ~CarriedSend() override;

  int Begin() override;
  void Stop(bool abort) override;

 private:
  static constexpr size_t kOutstandingMax = kPinnedMax / kPieceBytes;

  struct Piece {
    Region region;
    bool busy = false;
  };
  // What is over with a send.
  struct Sent {
    Piece* piece = nullptr;   // is free
    uint64_t registered = 0;  // is no more
  };

  void Step();
  bool SendNext();
  bool SendMemory(Part& part);
  bool SendUnregistered(Part& part);
  bool SendCopied(Part& part);
  bool PostCopied(Part& part, absl::Span<const std::byte> bytes);
  bool SendFromFile(Part& part);
  bool SendFileCopied(Part& part);
  size_t Read(const Part& part, std::byte* to, uint64_t room);
  bool Send(const Slice& slice, const Sent& sent);
  // Unless it is stopped.
  template <typename Below>
  absl::Status Post(const Below& below, const Sent& sent);
  SendFlags FlagsAfter(const Part& part) const;
  Piece* FreePiece();
  void OnSent(const Event& event, const Sent& sent);

  std::array<Piece, 2> pieces_;
  std::vector<std::byte> buffer_;  // in place of them, where nothing can be registered
  size_t outstanding_ = 0;
  bool counted_ = false;  // among what the helper lets leave before the process ends

  std::mutex mutex_;
  bool stopped_ = false;
  std::vector<OpId> posted_;  // some have ended
};

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_CARRIED_SEND_H_
