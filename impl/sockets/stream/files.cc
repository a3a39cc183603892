#include <utility>

#include "impl/sockets/context/context_state.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/file/file_receive.h"
#include "impl/sockets/file/file_send.h"
#include "impl/sockets/socket/socket_state.h"
#include "impl/sockets/stream/stream_state.h"

// Transfers of files, and the order of what is posted behind them.

namespace esdp::sockets {
namespace {

absl::Status Late() {
  return MakeError(ErrorKind::kDeadlineExceeded, "it had not ended before its deadline");
}

absl::Status NoDescriptor() {
  return MakeError(ErrorKind::kMemory, "no descriptor is left for the transfer of a file");
}

}  // namespace

template <typename Make>
absl::StatusOr<OpId> StreamState::PostFile(EventType type, const OpArgs& args, const Make& make) {
  const TransferFlags flags{.is_send = type == EventType::kSendFile};
  absl::StatusOr<Operation*> made = NewTransfer(type, flags, args);
  if (!made.ok()) return made.status();
  Operation& operation = **made;
  const OpId op = operation.id;
  operation.has_alarm = args.deadline != absl::InfiniteFuture();
  absl::Status ready = context_.files().threads.Start();
  if (ready.ok()) ready = context_.files().slots.Prepare(context_);
  const bool prepared = ready.ok();
  std::shared_ptr<FileOperation> file;
  bool waits = false;
  if (ready.ok()) {
    ready = OrNoMemory([&]() -> absl::Status {
      absl::StatusOr<std::shared_ptr<FileOperation>> answer = make(operation);
      if (!answer.ok()) return answer.status();
      file = *std::move(answer);
      file->HoldSlots();
      context_.operations().With(op, [&](Operation& found) { found.file = file; });
      waits = behind_files_.HoldOrBegin(operation);
      return absl::OkStatus();
    });
  }
  if (!ready.ok()) {
    if (prepared && file == nullptr) context_.files().slots.EndTransfer();
    operation.has_alarm = false;
    context_.Discard(operation);
    return KindOf(ready) == ErrorKind::kNone ? NoMemory() : ready;
  }
  context_.SetAlarm(op, args.deadline);
  if (!waits) file->Begin(/*by_caller=*/true);
  return op;
}

absl::StatusOr<OpId> StreamState::SendFile(const FilePlan& plan, const OpArgs& args) {
  const ContextCall call(&context_);
  if (!call.ok()) return call.status();
  if (absl::Status legal = FileSend::Check(context_, plan); !legal.ok()) return legal;
  return PostFile(EventType::kSendFile, args,
                  [&](Operation& operation) -> absl::StatusOr<std::shared_ptr<FileOperation>> {
                    for (const absl::Span<const Slice> slices : {plan.header, plan.trailer}) {
                      for (const Slice& slice : slices) {
                        if (absl::Status added = AddPiece(operation, slice, /*is_send=*/true);
                            !added.ok()) {
                          return added;
                        }
                      }
                    }
                    auto file = std::make_shared<FileSend>(Self(), context_, operation, plan);
                    if (!file->opened()) return NoDescriptor();
                    return file;
                  });
}

absl::StatusOr<OpId> StreamState::RecvFile(const FileSink& sink, const OpArgs& args) {
  const ContextCall call(&context_);
  if (!call.ok()) return call.status();
  if (absl::Status can = FileReceive::Check(context_, sink); !can.ok()) return can;
  return PostFile(EventType::kRecvFile, args,
                  [&](Operation& operation) -> absl::StatusOr<std::shared_ptr<FileOperation>> {
                    if (absl::Status room = FileReceive::Reserve(context_, sink); !room.ok()) {
                      return room;
                    }
                    auto file = std::make_shared<FileReceive>(Self(), context_, operation, sink);
                    if (!file->opened()) return NoDescriptor();
                    return file;
                  });
}

// --- its transfers -------------------------------------------------------------------------------

void StreamState::SubmitTransfer(provider::Transfer& transfer) {
  Submit({.kind = provider::Request::Kind::kTransfer, .transfer = &transfer});
}

void StreamState::CancelTransfer(provider::Transfer& transfer, OpId tag,
                                 provider::CancelMode mode) {
  Submit({.kind = provider::Request::Kind::kCancel,
          .transfer = &transfer,
          .cancel_mode = mode,
          .tag = static_cast<uint64_t>(tag)});
}

absl::Time StreamState::LingersBehindFile() const {
  if (!behind_files_.IsBusy(/*sends=*/true)) return absl::InfiniteFuture();
  return context_.Now() + socket_.OptionsInForce().linger;
}

// One that has had its turn has its deadline below, but for a file.
void StreamState::OnTransferLate(OpId op) {
  const bool aborts = deadline_policy_ == DeadlinePolicy::kAbortConnection;
  behind_files_.CancelFile(op, Late(),
                           aborts ? CancelMode::kAbortConnection : CancelMode::kIfNotStarted);
}

}  // namespace esdp::sockets
