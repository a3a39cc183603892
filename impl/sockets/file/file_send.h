#ifndef ESDP_IMPL_SOCKETS_FILE_FILE_SEND_H_
#define ESDP_IMPL_SOCKETS_FILE_FILE_SEND_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "esdp/file.h"
#include "impl/sockets/file/file_operation.h"

namespace esdp::sockets {

// SendFile: up to two chunks are being read, and those before them are on the wire.
class FileSend final : public FileOperation {
 public:
  // The pieces of header and trailer, one behind the other, are the operation's memory.
  FileSend(std::shared_ptr<StreamState> stream, ContextState& context, Operation& operation,
           const FilePlan& plan);
  ~FileSend() override;
  // Whether the plan can be: InvalidArgument tells what of it cannot.
  static absl::Status Check(ContextState& context, const FilePlan& plan);
  bool opened() const { return opened_; }  // false: no descriptor was left for it

 private:
  // One for each descriptor of the plan.
  struct OwnedFile {
    explicit OwnedFile(int of_caller) : callers(of_caller) {}
    int callers;
    int own =
        -1;  // a duplicate: the end of a Context waits for no medium, and the caller may close his
    // Once a long range of it was not in memory: another description, far ahead of which the system
    // reads. The caller's may have other positions, and hints of his.
    std::atomic<int> sequential{-1};
    std::atomic<bool> opens_sequential{false};  // has been begun
    std::atomic<bool> tells_cached{true};       // the system tells what of the file is in memory
  };
  static constexpr uint64_t kLongRange = SlotPool::kSlotsOfTransfer * SlotPool::kSlotBytes;
  // What is sent one behind the other: memory, in one transfer, or a range, in chunks.
  struct Part {
    size_t first_piece = 0;
    size_t pieces = 0;
    FileRange range = {};
    uint32_t range_index = 0;
    OwnedFile* file = nullptr;
    int direct = -1;
    bool is_memory() const { return pieces > 0; }
    // Only threads for files read of it, and it is worth a description of its own.
    bool is_long() const { return range.length > kLongRange; }
  };

  bool Step(Lock& lock) override;
  void MoveOnMedium(Lane& lane) override;
  void OnWireEnded(Lane& lane, const provider::TransferResult& result) override;
  // Not what is on its way already.
  bool CancelsBegun() const override { return on_short_ == OnShortFile::kStop && !AllShipped(); }
  bool IsOver() const override;
  void Describe(Event& event) const override;
  bool AllShipped() const { return part_ == parts_.size() && shipped_ == begun_chunks_; }
  OwnedFile& Own(int descriptor);
  void DropUnshipped();
  bool ShipNext(Lock& lock);
  bool BeginChunk(Lock& lock);
  void BeginMemory(Lane& lane);
  void BeginRange(Lane& lane, Lock& lock);
  bool Looks(const Lane& lane) const;
  void ReadCached(Lane& lane);
  void OpenSequential(Lane& lane);
  void ReadOnMedium(Lane& lane);

  std::deque<OwnedFile> files_;  // they stay where they are
  std::vector<Part> parts_;
  const bool drop_behind_;
  bool opened_ = false;
  size_t part_ = 0;            // of the next chunk
  uint64_t done_of_part_ = 0;  // begun, of the range
  uint64_t begun_chunks_ = 0;
  uint64_t shipped_ = 0;      // chunks
  uint32_t range_ = 0;        // of the last byte that went
  uint64_t file_offset_ = 0;  // behind it
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_FILE_FILE_SEND_H_
