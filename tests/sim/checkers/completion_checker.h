#ifndef ESDP_TESTS_SIM_CHECKERS_COMPLETION_CHECKER_H_
#define ESDP_TESTS_SIM_CHECKERS_COMPLETION_CHECKER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "esdp/event.h"
#include "tests/sim/checkers/findings.h"

namespace esdp::simulation {

// The rules of completion (api/esdp/socket.h), for one Context: it hears of each accepted post and
// of each event, and of nothing else.
class CompletionChecker {
 public:
  struct Posted {
    EventType type = EventType::kNone;
    SocketId socket = SocketId::kNone;
    uint64_t length = 0;
    bool wait_all = false;
  };

  CompletionChecker(Findings& findings, std::string name)
      : findings_(&findings), name_(std::move(name)) {}

  void OnPosted(OpId op, const Posted& posted);
  void OnEvent(const Event& event);
  // Accepted and not ended, of one socket or of all.
  size_t Outstanding() const { return live_.size(); }
  std::string Describe() const;
  // Nothing may be outstanding.
  void Finish();

 private:
  struct SocketRecord {
    std::deque<OpId> order[3];  // of sends; of receives; of AwaitUrgents: posted and not ended
    ErrorKind root = ErrorKind::kNone;
    bool ended = false;         // by an end of the stream
    bool urgent_ended = false;  // no urgent byte comes any more
    bool closed = false;
  };

  void CheckOrder(const Event& event, const Posted& posted);
  void CheckUrgent(const Event& event);
  void CheckBytes(const Event& event, const Posted& posted);
  void CheckCause(const Event& event);
  void Find(const Event& event, const std::string& what);

  Findings* findings_;
  std::string name_;
  std::map<OpId, Posted> live_;
  std::map<OpId, bool> known_;  // every operation ever: whether it has ended
  std::map<SocketId, SocketRecord> sockets_;
};

}  // namespace esdp::simulation

#endif  // ESDP_TESTS_SIM_CHECKERS_COMPLETION_CHECKER_H_
