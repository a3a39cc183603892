#ifndef ESDP_TESTS_SDP_EXHAUSTION_WORLD_H_
#define ESDP_TESTS_SDP_EXHAUSTION_WORLD_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/sdp/exhaustion/end.h"
#include "tests/sdp/exhaustion/scenario.h"

// Two ends and what is between them, as a value: what can happen next, and what it leads to.

namespace esdp::sdp::exhaustion {

enum class What : uint8_t {
  kAsk,           // thread `which` of the application makes its next ask
  kDeliver,       // what the peer has sent first reaches this end
  kFinishSend,    // the oldest Send has left
  kFinishRead,    // the oldest READ is placed
  kFinishWrite,   // the oldest WRITE has left
  kWithdrawn,     // the oldest withdrawal is done
  kExposed,       // the two answers to Expose
  kExposeFailed,  //
  kPrepared,      // the two answers to PrepareReceives
  kPrepareFailed,
  kResume,  // the new queue pair of a suspended connection is ready
  kTimer,   // timer `which` fires
  kLose,    // the queue pair is gone
};

struct Happening {
  uint8_t end = 0;
  What what = What::kAsk;
  uint8_t which = 0;
};

class World {
 public:
  // Connected, nothing asked. The scenario must outlive every copy.
  explicit World(const Scenario& scenario);

  void Possible(std::vector<Happening>& possible) const;
  // With a log: tells what was done and what the cores did.
  void Do(const Happening& happening, std::string* log = nullptr);

  // For a state in which nothing can happen: is it one that may be the end? Then lets both ends
  // send a little more, shut down and read to the end of the stream, which must go well.
  void CheckEnd(std::string* log = nullptr);

  // The first thing that may not be; empty as long as all is well.
  std::string wrong() const;
  Marks TakeMarks();
  uint64_t digest() const;

 private:
  void Connect();
  void CollectAsks(uint8_t end, std::vector<Happening>& possible) const;
  void CollectWork(uint8_t end, std::vector<Happening>& possible) const;
  void CollectTimers(std::vector<Happening>& possible) const;
  bool MayMake(const End& end, const Thread& thread, size_t next) const;
  bool MayEnd(const End& end, const End& peer) const;
  bool MayResume(const End& end, const End& peer) const;
  void Resume(End& end, End& peer);
  void Answer(End& end, bool exposed);
  void AnswerPrepare(End& end, bool done);
  // Takes what is first on the way to `end`, with the scenario's fault done to it.
  Parcel TakeParcel(const End& end, End& peer);
  void Deliver(End& end, End& peer);
  void FinishRead(End& end, End& peer);
  void FinishWrite(End& end);
  void FinishWithdrawal(End& end);
  void FireTimer(End& end, uint8_t which);
  // What does not wait: answers and Sends, where the scenario has them prompt.
  void Settle();
  void CheckOperations(const End& end, const End& peer);
  void CheckStream(const End& sink, const End& source, bool whole);
  void CheckNothingIsLeft(const End& end);
  std::string Describe(const Happening& happening) const;
  const Application& application(uint8_t end) const {
    return end == 0 ? scenario_->a : scenario_->b;
  }

  const Scenario* scenario_;
  std::array<End, 2> ends_;
  Time now_{};
};

}  // namespace esdp::sdp::exhaustion

#endif  // ESDP_TESTS_SDP_EXHAUSTION_WORLD_H_
