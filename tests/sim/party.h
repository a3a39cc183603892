#ifndef ESDP_TESTS_SIM_PARTY_H_
#define ESDP_TESTS_SIM_PARTY_H_

#include <array>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "esdp/socket.h"
#include "impl/base/random.h"
#include "impl/base/time.h"
#include "tests/sim/checkers/findings.h"
#include "tests/sim/checkers/marks.h"
#include "tests/sim/checkers/memory_checker.h"
#include "tests/sim/link.h"
#include "tests/sim/plan.h"
#include "tests/sim/station.h"

namespace esdp::simulation {

// The number of one of the weights, drawn by them.
template <size_t N>
size_t DrawByWeight(Random& random, const std::array<uint32_t, N>& weights) {
  uint64_t left = random.Below(std::accumulate(weights.begin(), weights.end(), uint64_t{0}));
  for (size_t i = 0; i < N; ++i) {
    if (left < weights[i]) return i;
    left -= weights[i];
  }
  return 0;
}

// What all parties of a run share.
struct Surroundings {
  const Plan& plan;
  Findings& findings;
  Marks& marks;
  MemoryChecker& memory;
};

// One end of a connection and the application behind it. It draws what to do: posts, cancels,
// changes options, rests; then it leaves in the way drawn.
class Party {
 public:
  Party(const Surroundings& around, Station& station, Socket socket, size_t side, uint64_t seed);
  ~Party();

  // What is waiting in its queue.
  std::vector<Event> TakeEvents();
  // Before it can do anything: connected, or accepted. `link` outlives it.
  void Begin(Link& link, Time now);
  // The connecting side: posts its Connect. False when it was refused at once.
  bool Connect(const Address& address);
  void OnEvent(const Event& event, Time now);
  // Does what is due, if anything is; `next` tells when to come back.
  void Move(Time now);
  Time next() const { return next_; }
  // Ends its connection now, whatever it is doing.
  void Abort();

  Station& station() const { return station_; }
  bool done() const { return phase_ == Phase::kDone; }
  SocketId socket_id() const { return socket_id_; }
  uint16_t local_port() const { return socket_.local().port(); }
  Link* link() { return link_; }
  std::string Describe() const;

 private:
  enum class Phase : uint8_t { kConnecting, kActing, kReading, kClosing, kDone };

  struct Operation {
    EventType type = EventType::kNone;
    std::vector<Piece> pieces;
    std::vector<std::byte> copy;  // of SendCopy and RecvCopy
    uint64_t length = 0;
    size_t send_number = 0;
    bool is_send() const { return type == EventType::kSend || type == EventType::kSendV; }
    bool is_receive() const { return type == EventType::kRecv || type == EventType::kRecvV; }
  };

  bool HasSlotFor(bool is_send) const;
  OpArgs Args();
  OpArgs DrawArgs();
  void DoOne();
  void Send();
  void Receive(uint64_t length);
  void CancelOne();
  void AwaitUrgent();
  void SetMode();
  void Suspend();
  void SetOption();
  bool TakePieces(Operation& operation);
  void Launch(const absl::StatusOr<OpId>& posted, Operation operation, bool wait_all);
  void CheckRefusal(const absl::Status& status);
  void GiveBack(Operation& operation);
  void OnTransfer(Operation& operation, const Event& event);
  void NoteUrgent(const Event& event);
  bool IsOfConnection(const Operation& operation, const Event& event) const;
  void NoteReceived(const Operation& operation, const Event& event);

  void LeaveActing();
  void ReadOn();
  void ShutDown();
  void Close(CloseMode mode);
  void End();
  void NoteStats();
  OpId Post(EventType type, const absl::StatusOr<OpId>& posted);
  Time DrawRest(Time now, Duration most);

  Surroundings around_;
  Station& station_;
  EventQueue queue_;
  uint32_t depth_;
  Socket socket_;
  SocketId socket_id_;
  size_t side_;
  Random random_;
  Link* link_ = nullptr;
  Phase phase_ = Phase::kConnecting;
  Time next_ = kTimeInfinite;
  uint32_t acts_left_ = 0;
  bool shut_ = false;  // Shutdown was accepted
  bool shut_done_ = false;
  bool end_seen_ = false;
  bool failed_ = false;  // the connection has ended
  bool dropped_ = false;
  bool aborts_next_ = false;
  std::map<OpId, Operation> operations_;
};

}  // namespace esdp::simulation

#endif  // ESDP_TESTS_SIM_PARTY_H_
