#include "impl/exs/carried.h"

#include <utility>

#include "esdp/status.h"
#include "impl/exs/convert.h"

namespace esdp::exs {

Carried::Carried(const Place& place, Transfer transfer, Done done)
    : library_(place.library),
      socket_(place.socket),
      ahead_(place.ahead),
      transfer_(std::move(transfer)),
      register_failures_(place.register_failures),
      done_(std::move(done)) {}

Carried::~Carried() = default;

bool Carried::Register(const Part& part, uint64_t length, Region* region) {
  if (transfer_.copies) return false;
  absl::StatusOr<Region> made = library_.pins().Take(
      library_.context(), transfer_.way, absl::MakeSpan(part.base + part.offset, length));
  if (made.ok()) {
    *region = *std::move(made);
    return true;
  }
  CopyFromHere();
  return false;
}

void Carried::CopyFromHere() {
  transfer_.copies = true;
  register_failures_.fetch_add(1, std::memory_order_relaxed);
}

void Carried::Note(const Event& event) {
  end_.bytes += event.bytes;
  end_.flags |= FlagsOf(event);
  if (event.ok()) return;
  if (end_.error == 0) end_.ours = IsOurs(event.kind);
  Fail(ErrnoOf(event, false));
}

void Carried::Fail(int error) {
  if (end_.error == 0) end_.error = error;
}

void Carried::Fail(const absl::Status& status) {
  if (end_.error == 0) end_.ours = IsOurs(KindOf(status));
  Fail(ErrnoOf(status));
}

void Carried::Finish() {
  if (done_) std::exchange(done_, nullptr)(end_);
}

}  // namespace esdp::exs
