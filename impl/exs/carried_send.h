#ifndef ESDP_IMPL_EXS_CARRIED_SEND_H_
#define ESDP_IMPL_EXS_CARRIED_SEND_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "esdp/region.h"
#include "impl/exs/carried.h"

namespace esdp::exs {

// A send in pieces. Memory that nobody registered is registered piece by piece, while those before
// are sent, or copied where that fails. Files go by SendFile, with the registered memory around
// them; they are read here and copied where there is no registered memory for them, or where they
// are no regular ones.
//
//   Owns:     its parts and pieces.
//   Threads:  as Carried.
//   Blocks:   as Carried; only files that are copied are read here.
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

  // What is over with a send.
  struct Sent {
    uint64_t registered = 0;  // is no more
    bool is_file = false;
  };

  void Step();
  bool SendNext();
  bool SendMemory(Part& part);
  bool SendUnregistered(Part& part);
  bool SendCopied(Part& part);
  bool PostCopied(Part& part, absl::Span<const std::byte> bytes);
  size_t EndOfFiles() const;
  bool SendFiles(size_t end);
  bool SendFileCopied(Part& part);
  size_t Read(const Part& part, std::byte* to, uint64_t room);
  bool Send(const Slice& slice, const Sent& sent);
  // Unless it is stopped.
  template <typename Below>
  absl::Status Post(const Below& below, const Sent& sent);
  SendFlags FlagsAfter(const Part& part) const;
  void OnSent(const Event& event, const Sent& sent);

  std::vector<std::byte> buffer_;  // of files that are copied
  size_t outstanding_ = 0;
  bool file_goes_ = false;
  bool counted_ = false;  // among what the helper lets leave before the process ends

  std::mutex mutex_;
  bool stopped_ = false;
  std::vector<OpId> posted_;  // some have ended
};

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_CARRIED_SEND_H_
