#ifndef ESDP_REGION_H_
#define ESDP_REGION_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "esdp/options.h"

namespace esdp {

namespace sockets {
class RegionAnchor;
class RegionState;
class SliceAccess;
}  // namespace sockets

// Who may touch a region, and when.
enum class Exposure : uint8_t {
  kPerOperation,  // the peer, exactly the range of a transfer, for the time of it
  kRegionKey,     // the peer, by the region's own key, for as long as the region lives: for trusted
                  // fabrics
  kNone,          // nobody but this side: transfers are copied
};

struct RegisterOptions {
  bool local_write = true;  // false: the region can only be sent from
  Exposure exposure = Exposure::kPerOperation;
};

// Whether memory of Context::Allocate lies where another program on this host can be given it to
// read, so that the fabric "local" copies from it in one step.
enum class Shareable : uint8_t {
  kAuto,    // from 64 KiB on, where a fabric of the Context makes use of it and the system has it
  kNever,   // it lies in huge pages where the system has them, and a child of fork has a copy
  kAlways,  // or Allocate fails
};

struct AllocateOptions {
  RegisterOptions registration = {};
  Shareable shareable = Shareable::kAuto;
};

// A Slice is a range of a Region, checked when it was made, and what operations take.
//
//   Owns:     nothing. A Region is there as long as a handle of it or an operation on it is, which
//             the caller sees to during each post.
//   Threads:  a value.
//   Blocks:   never.
//   Units:    bytes; a length of 0 is legal.
//   Errors:   an empty Slice (default constructed), and one whose Region is gone or closed, are
//             refused at post with InvalidArgument.
class Slice {
 public:
  Slice() = default;
  uint64_t offset() const { return offset_; }
  uint64_t length() const { return length_; }

 private:
  friend class Region;
  friend class sockets::SliceAccess;
  const sockets::RegionAnchor* anchor_ = nullptr;
  uint64_t number_ = 0;  // of the region at that place
  uint64_t offset_ = 0;
  uint64_t length_ = 0;
};

struct RegionInfo {
  std::byte* base = nullptr;  // null where the processor need not reach it
  uint64_t length = 0;
  uint32_t chunks = 0;  // registrations it was split into
  // Outstanding, that use it. One just posted may be missing while another thread moves the
  // Context.
  uint32_t operations = 0;
  Exposure exposure = Exposure::kPerOperation;
  bool local_write = true;
  absl::Duration registration_time;
};

// A Region is memory that the application has registered. There is no pin-down cache: what is not
// registered is never pinned, and what is stays so until Close or until the last handle and the
// last operation are gone.
//
//   Owns:     the registration. The memory stays the application's (that of Context::Allocate
//             belongs to the Region), which must not free it before Close has succeeded or the last
//             event of an operation on it has been delivered.
//   Threads:  any. A handle is copyable and counted.
//   Blocks:   Close(deadline) only.
//   Units:    bytes.
//   Errors:   see each call. Dropping the last handle while operations run is safe: deregistration
//             follows the last event.
class Region {
 public:
  Region() = default;  // an empty handle

  bool valid() const { return state_ != nullptr; }
  // The whole region. Of an empty handle: an empty Slice.
  Slice slice() const;
  // OutOfRange when [offset, offset + length) is not inside the region, also when the sum
  // overflows. FailedPrecondition after Close.
  absl::StatusOr<Slice> slice(uint64_t offset, uint64_t length) const;
  RegionInfo info() const;

  // Deregisters. FailedPrecondition (kBusy) while operations use it; nothing has changed then.
  // Later slices and posts are refused.
  absl::Status Close();
  // The same, but waits for operations to end; DeadlineExceeded when some are left at `deadline`.
  // With manual progress it moves the Context meanwhile.
  absl::Status Close(absl::Time deadline);

 private:
  friend class sockets::SliceAccess;
  std::shared_ptr<sockets::RegionState> state_;
};

}  // namespace esdp

#endif  // ESDP_REGION_H_
