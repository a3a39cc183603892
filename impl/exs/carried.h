#ifndef ESDP_IMPL_EXS_CARRIED_H_
#define ESDP_IMPL_EXS_CARRIED_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "esdp/event.h"
#include "esdp/socket.h"
#include "impl/exs/ahead.h"
#include "impl/exs/library.h"
#include "impl/exs/transfer.h"

namespace esdp::exs {

// How a transfer has ended that the library carried out in pieces.
struct CarriedEnd {
  int error = 0;
  bool ours = false;  // the error is that this side has closed
  uint64_t bytes = 0;
  uint32_t flags = 0;  // EXSX_EVF_*
};

// A transfer that the library carries out itself, in pieces: of which the library below has one, or
// a few, at a time.
//
//   Owns:     what it moves.
//   Threads:  Begin and Stop any; the rest is the helper's thread.
//   Blocks:   where registering memory or reading a file does.
//   Units:    bytes.
//   Errors:   an errno in the end.
class Carried {
 public:
  using Done = std::function<void(const CarriedEnd&)>;
  // What is registered at a time of one transfer, in so many pieces.
  static constexpr uint64_t kPinnedMax = 1024 * 1024;
  static constexpr uint64_t kPieceBytes = 256 * 1024;

  // Where it is moved.
  struct Place {
    Library& library;
    Socket& socket;
    std::atomic<uint64_t>& register_failures;  // counted there
    Ahead& ahead;                              // of what is received
  };

  Carried(const Place& place, Transfer transfer, Done done);
  virtual ~Carried();
  Carried(const Carried&) = delete;
  Carried& operator=(const Carried&) = delete;

  // Asks whether the socket can do it now; an errno if not.
  virtual int Begin() = 0;
  // Moves nothing more: it ends with ECANCELED unless all is on its way. With `abort` it takes the
  // connection down.
  virtual void Stop(bool abort) = 0;

 protected:
  // The next piece of memory that nobody registered, of up to so many bytes. False: it has to be
  // copied, as all that follows.
  bool Register(const Part& part, uint64_t length, Region* region);
  // Nothing can be registered any more.
  void CopyFromHere();
  void Unregister(uint64_t bytes) { library_.pins().Return(bytes); }
  bool copies() const { return transfer_.copies; }

  // What an event tells, beside its bytes. The first cause counts.
  void Note(const Event& event);
  void Fail(int error);
  void Fail(const absl::Status& status);
  void Finish();

  Library& library_;
  Socket& socket_;
  Ahead& ahead_;
  Transfer transfer_;
  size_t next_ = 0;  // the part under way
  CarriedEnd end_;

 private:
  std::atomic<uint64_t>& register_failures_;
  Done done_;
};

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_CARRIED_H_
