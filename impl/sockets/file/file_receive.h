#ifndef ESDP_IMPL_SOCKETS_FILE_FILE_RECEIVE_H_
#define ESDP_IMPL_SOCKETS_FILE_FILE_RECEIVE_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "esdp/file.h"
#include "impl/sockets/file/file_operation.h"

namespace esdp::sockets {

// RecvFile: receives are posted into the lanes' slots, and what has come is written in the order of
// the stream, one chunk at a time: a file system lets nobody else write to a file meanwhile. Where the
// medium is slower than the peer no slot is free, and the peer waits. Syncs go on beside the writes.
class FileReceive final : public FileOperation {
 public:
  FileReceive(std::shared_ptr<StreamState> stream, ContextState& context, Operation& operation,
              const FileSink& sink);
  ~FileReceive() override;
  // Whether there can be such a transfer: InvalidArgument.
  static absl::Status Check(ContextState& context, const FileSink& sink);
  // Takes room for it, where the sink says so: ResourceExhausted (kNoSpace).
  static absl::Status Reserve(ContextState& context, const FileSink& sink);
  bool opened() const { return descriptor_ >= 0; }  // false: no descriptor was left for it

 private:
  bool Step(Lock& lock) override;
  void MoveOnMedium(Lane& lane) override;
  void OnWireEnded(Lane& lane, const provider::TransferResult& result) override;
  bool CancelsBegun() const override { return true; }
  bool IsOver() const override;
  void Describe(Event& event) const override;
  bool PostNext(Lock& lock);
  bool WriteNext(Lock& lock);
  bool EndWritten(Lock& lock);
  bool CancelPosted(Lock& lock);
  bool SendErrand(Lock& lock);
  bool EndErrand(Lock& lock);
  void MakeHole(Lane& lane);
  // Nothing more comes, and nothing is being written.
  bool IsAllWritten() const { return AllIdle() && (stopped() || written_ == sink_.length); }
  bool IsSyncDue() const;

  const FileSink sink_;
  const int descriptor_;   // a duplicate: the end of a Context waits for no medium
  uint64_t asked_ = 0;     // of the peer: posted, and not known to have come short
  uint64_t posted_ = 0;    // chunks
  uint64_t to_write_ = 0;  // the chunk whose turn it is
  // Bytes, from the first on:
  uint64_t written_ = 0;
  uint64_t started_ = 0;  // on their way to the medium
  uint64_t synced_ = 0;
  uint64_t dropped_ = 0;        // by the page cache
  bool medium_failed_ = false;  // nothing is written behind
  bool sync_failed_ = false;
  bool writing_ = false;
  bool makes_holes_;  // of the thread that writes
  bool posted_cancelled_ = false;
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_FILE_FILE_RECEIVE_H_
