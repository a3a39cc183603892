#ifndef ESDP_IMPL_EXS_CARRIED_RECEIVE_H_
#define ESDP_IMPL_EXS_CARRIED_RECEIVE_H_

#include <cstdint>
#include <memory>
#include <mutex>

#include "impl/exs/carried.h"

namespace esdp::exs {

// A receive in pieces, or one of what was read ahead before, or is now since it only looks. Pieces
// come one after the other: an urgent byte or the end of the stream may end the
// whole with any of them, and what is behind that is not its own.
//
//   Owns:     its parts.
//   Threads:  as Carried.
//   Blocks:   as Carried.
//   Units:    bytes.
//   Errors:   an errno in the end.
class CarriedReceive final : public Carried, public std::enable_shared_from_this<CarriedReceive> {
 public:
  using Carried::Carried;

  int Begin() override;
  void Stop(bool abort) override;

 private:
  void TakeAhead();
  void BeginPeek();
  absl::StatusOr<OpId> PostPeek(const OpArgs& args);
  void OnPeeked(const Event& event, bool stopped);
  void ShowAhead();
  bool Satisfied() const;
  void FinishLater();
  absl::Status PostNext();
  absl::StatusOr<OpId> Post(Part& part, const OpArgs& args);
  void OnReceived(const Event& event);

  uint64_t wanted_ = 0;      // of a peek
  uint64_t asked_ = 0;       // of the piece that is out
  uint64_t registered_ = 0;  // of it, for this transfer

  std::mutex mutex_;
  bool stopped_ = false;
  OpId posted_ = OpId::kNone;
};

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_CARRIED_RECEIVE_H_
