#ifndef ESDP_TESTS_SIM_CHECKERS_STREAM_CHECKER_H_
#define ESDP_TESTS_SIM_CHECKERS_STREAM_CHECKER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "impl/base/bytes.h"
#include "tests/sim/checkers/findings.h"

namespace esdp::simulation {

// One direction of a connection, as the two applications see it: what was received is what was
// sent, byte for byte, in order, once; all of it, where the end was orderly. Sends that were
// cancelled before a byte of them moved are not part of the stream. Urgent bytes arrive as such, in
// their places, and no more of them are told of than were sent.
class StreamChecker {
 public:
  StreamChecker(Findings& findings, std::string name)
      : findings_(&findings), name_(std::move(name)) {}

  // A send was accepted; `seed` makes its content (content.h). `urgent`: its last byte is. Returns
  // its number.
  size_t SendPosted(uint64_t seed, uint64_t length, bool urgent = false);
  // Its terminal event. `left_out`: it was cancelled and no byte of it has moved.
  void SendEnded(size_t number, bool ok, bool left_out, uint64_t stream_offset);
  // A receive has ended with these bytes, of which the last is urgent or is not.
  void Received(ConstBytes bytes, uint64_t stream_offset, bool urgent = false);
  void EndOfStream() { end_seen_ = true; }
  // The receiving application is told of one urgent byte; that there will be none any more. The
  // first returns whether the byte itself has not come.
  bool UrgentTold() { return ++urgent_told_ > urgent_received_.size(); }
  void UrgentEnded() { urgent_ended_ = true; }

  // Compares. `whole`: nothing is allowed to be missing.
  void Finish(bool whole);
  uint64_t received() const { return received_.size(); }

 private:
  struct Send {
    uint64_t seed = 0;
    uint64_t length = 0;
    bool ended = false;
    bool ok = false;
    bool left_out = false;
    uint64_t offset = 0;
    bool urgent = false;
  };

  void CheckUrgent(const std::vector<uint64_t>& sent) const;
  void Find(const std::string& what) const { findings_->Add(name_ + ": " + what); }

  Findings* findings_;
  std::string name_;
  std::vector<Send> sends_;
  std::vector<std::byte> received_;
  bool end_seen_ = false;
  std::vector<uint64_t> urgent_received_;  // how many bytes of the stream end in an urgent one
  uint64_t urgent_told_ = 0;
  bool urgent_ended_ = false;
};

}  // namespace esdp::simulation

#endif  // ESDP_TESTS_SIM_CHECKERS_STREAM_CHECKER_H_
