#ifndef ESDP_IMPL_SOCKETS_FILE_BEHIND_FILES_H_
#define ESDP_IMPL_SOCKETS_FILE_BEHIND_FILES_H_

#include <list>

#include "absl/status/status.h"
#include "esdp/operation.h"
#include "impl/provider/observer.h"
#include "impl/sockets/file/post_order.h"
#include "impl/sockets/stream/operation.h"

namespace esdp::sockets {

class ContextState;
class StreamState;

// What is posted to a stream behind the transfer of a file waits here until it has its turn, and
// ends here where it gets none.
//
//   Owns:     nothing; operations are the Context's.
//   Threads:  any.
//   Blocks:   never.
//   Units:    –
//   Errors:   Hold and HoldOrBegin throw std::bad_alloc, and nothing has changed.
class BehindFiles {
 public:
  // Part of `stream`, which outlives it.
  BehindFiles(StreamState& stream, ContextState& context) : stream_(stream), context_(context) {}

  // A file goes in this direction.
  bool IsBusy(bool sends) const { return (sends ? sends_ : receives_).busy(); }
  // Whether a file goes before it; then it waits, until its deadline.
  bool Hold(Operation& operation);
  // The same of the end of the sends.
  bool Hold(provider::Request::Kind kind) { return sends_.Hold({.kind = kind}); }
  bool HoldOrBegin(Operation& file);
  // All of a file has been submitted: what waits behind it goes, up to another file, whose events
  // come behind its own. Or it is over.
  void GoOn(bool sends, bool is_over);
  // What waits now will have no turn: it is for Cancel, behind the event of the file.
  std::list<PostOrder::Turn> TakeOperations(bool sends) { return OrderOf(sends).TakeOperations(); }
  void Cancel(const std::list<PostOrder::Turn>& taken);
  // It ends with this status, where it has had no turn yet; or in this mode, where it is having its
  // turn. False: it is for the shard.
  bool End(OpId op, const absl::Status& status, provider::CancelMode mode);
  // A file, whether it waits or goes.
  void CancelFile(OpId op, const absl::Status& status, CancelMode mode);

 private:
  void Pass(Operation& operation);
  PostOrder& OrderOf(bool sends) { return sends ? sends_ : receives_; }

  StreamState& stream_;
  ContextState& context_;
  PostOrder sends_, receives_;
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_FILE_BEHIND_FILES_H_
