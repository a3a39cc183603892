#include "impl/sockets/file/behind_files.h"

#include <memory>

#include "impl/sockets/context/context_state.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/file/file_operation.h"
#include "impl/sockets/socket/socket_state.h"
#include "impl/sockets/stream/stream_state.h"

namespace esdp::sockets {

bool BehindFiles::Hold(Operation& operation) {
  const provider::Transfer& transfer = operation.transfer;
  if (transfer.awaits_urgent) return false;  // of no direction
  const OpId op = operation.id;
  const Time deadline = transfer.deadline;
  operation.has_alarm = deadline != kTimeInfinite;
  if (!OrderOf(transfer.is_send).Hold({&operation})) {
    operation.has_alarm = false;
    return false;
  }
  context_.SetAlarmAt(op, deadline);
  return true;
}

bool BehindFiles::HoldOrBegin(Operation& file) {
  return OrderOf(file.transfer.is_send).HoldOrBegin(file);
}

void BehindFiles::GoOn(bool sends, bool is_over) {
  if (!OrderOf(sends).BeginTurns(is_over)) return;
  while (const auto turn = OrderOf(sends).Next()) {
    if (turn->operation == nullptr) {
      stream_.Submit({.kind = turn->kind});
    } else if (turn->operation->file == nullptr) {
      Pass(*turn->operation);
    } else {
      const std::shared_ptr<FileOperation> file = turn->operation->file;
      return file->Begin(/*by_caller=*/false);
    }
  }
}

void BehindFiles::Pass(Operation& operation) {
  // It may have ended before the submission returns.
  const OpId op = operation.id;
  provider::Transfer& transfer = operation.transfer;
  PostOrder& order = OrderOf(transfer.is_send);
  stream_.SubmitTransfer(transfer);
  if (const auto mode = order.EndPassing()) stream_.CancelTransfer(transfer, op, *mode);
}

void BehindFiles::Cancel(const std::list<PostOrder::Turn>& taken) {
  for (const PostOrder::Turn& turn : taken) {
    context_.Finish(*turn.operation, MakeError(ErrorKind::kCancelled,
                                               "the transfer of a file before it ended too early"));
  }
}

bool BehindFiles::End(OpId op, const absl::Status& status, provider::CancelMode mode) {
  for (const bool sends : {true, false}) {
    if (!IsBusy(sends)) continue;
    if (Operation* const waiting = OrderOf(sends).Take(op); waiting != nullptr) {
      context_.Finish(*waiting, status);
      return true;
    }
    if (OrderOf(sends).CancelPassing(op, mode)) return true;
  }
  return false;
}

void BehindFiles::CancelFile(OpId op, const absl::Status& status, CancelMode mode) {
  if (End(op, status, provider::CancelMode::kIfNotStarted)) return;
  std::shared_ptr<FileOperation> file;
  context_.operations().With(op, [&](Operation& found) { file = found.file; });
  if (file != nullptr) file->Cancel(status, mode);
}

}  // namespace esdp::sockets
