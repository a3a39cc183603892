#ifndef ESDP_TESTS_SDP_EXHAUSTION_END_H_
#define ESDP_TESTS_SDP_EXHAUSTION_END_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "impl/sdp/connection.h"
#include "tests/sdp/exhaustion/scenario.h"
#include "tests/sdp/exhaustion/watch.h"
#include "tests/sdp/lent.h"

// One of the two ends as a value: a core, its application's memory, and its side of a fabric that
// holds back whatever it may. It carries out actions, and notes the first that may not be.

namespace esdp::sdp::exhaustion {

// User bytes. Each byte of a send tells its operation and its place: number * 64 + offset.
using Payload = std::string;

struct Operation : testing::Lent {
  Ask::Kind kind = Ask::Kind::kSend;
  uint8_t number = 0;
  Payload memory;
  std::optional<FinishOperation> result;
};

// What travels to the other end, in order: a message, or an RDMA write.
struct Parcel {
  uint8_t queue_pair = 0;
  std::optional<Write> write;
  wire::Message message;
  Payload payload;
  std::optional<uint32_t> invalidate;
};

struct Exposure {
  AdvertId advert{};
  OperationRange range;
  Right right = Right::kRemoteRead;
  uint32_t key = 0;
  bool live = true;
  bool withdrawing = false;
};

inline constexpr uint64_t kWindowAddress = 0x1000;

struct End {
  explicit End(const Config& its_config) : core(its_config), config(&its_config) {}

  // Hands the input in and carries out what follows, except an answer to Expose that is left open.
  void Feed(const Input& input, Time now);
  void Make(const Ask& ask, Time now);
  // Feeds for all Sends that have left, where they leave at once.
  void FinishSend(Time now);
  void Lose(bool clean, Time now);

  Operation* Find(OperationId id);
  const Operation* Find(uint8_t number) const;
  Exposure* FindKey(uint32_t key);
  // Memory that a peer's read or write names, or nullptr with `wrong` set.
  char* Reach(const RemoteRange& place, uint32_t length, Right right);
  char* At(const OperationRange& range);
  void Wrong(const std::string& what);
  size_t adverts_out() const;
  bool ended(uint8_t number) const;
  void AddTo(Digest& digest) const;

  Connection core;
  const Config* config;
  Watch watch;
  std::string wrong;           // the first thing that may not be
  std::string* log = nullptr;  // where actions are told, when somebody wants to read them
  uint16_t peer_max_adverts = 1;
  bool acknowledges_early = false;

  // How long the peer's urgent sends are, by their numbers; 0: not urgent.
  std::array<uint8_t, 4> peer_urgent{};
  uint8_t urgent_told = 0;

  uint8_t queue_pair = 0;  // which one this is of the connection's
  bool awaits_hello = false, connecting = false;
  std::optional<uint32_t> to_prepare;  // PrepareReceives waits for its answer

  std::vector<size_t> next_ask;  // of each thread
  std::vector<Operation> operations;
  std::vector<uint8_t> sends;  // their numbers in the order they were asked
  Payload received;

  std::optional<wire::Message> hello, hello_ack;
  bool connected = false, reported_closed = false, lost = false;
  bool broken = false;  // it was reported closed, and not in order
  std::optional<Disconnect> disconnect;

  std::vector<uint16_t> posted;         // receive buffers, in order
  std::vector<Payload> receive_memory;  // by buffer
  std::vector<uint32_t> receive_bytes;  // by buffer: its size, headers included
  std::vector<Payload> send_memory;     // by buffer
  std::vector<Parcel> outgoing;         // on their way to the peer
  std::vector<sdp::Send> unfinished;    // posted, SendFinished not given
  std::vector<Read> reading;            // posted, ReadFinished not given
  std::vector<Write> writing;           // posted, WriteFinished not given
  std::vector<Exposure> exposures;      // not let go of
  std::optional<AdvertId> to_answer;    // Expose waits for this answer
  uint32_t next_key = 100;
  std::vector<std::pair<Timer, Time>> timers;

 private:
  template <typename T>
  void Act(const T&) {
    Wrong("an action that this search does not know");
  }
  void Act(const StartConnect& action);
  void Act(const ReplaceQueuePair&);
  void Act(const AwaitHello&) { awaits_hello = true; }
  void Act(const Farewell&) {}
  void Act(const AcceptConnection& action) { hello_ack = action.hello_ack; }
  void Act(const RejectConnection&) { Wrong("the connection is rejected"); }
  void Act(const ReportConnected&) { connected = true; }
  void Act(const Disconnect& action);
  void Act(const ReportClosed& action);
  void Act(const PostReceive& action);
  void Act(const PrepareReceives& action) { to_prepare = action.bytes; }
  void Act(const RetireReceive&) {}
  void Act(const ReportReadiness&) {}
  void Act(const sdp::Send& action);
  void Act(const Read& action);
  void Act(const Write& action);
  void Act(const CopyIn& action);
  void Act(const CopyOut& action);
  void Act(const Expose& action);
  void Act(const Withdraw& action);
  void Act(const FinishOperation& action);
  void Act(const SetTimer& action);
  void Act(const ClearTimer& action);
  void CheckTurn(const Operation& operation, const FinishOperation& action);
  void CheckUrgent(const Operation& operation, const FinishOperation& action, size_t at);
  void TakeReceived(const Operation& operation, const FinishOperation& action);
};

// For people.
std::string ToText(const Action& action);

}  // namespace esdp::sdp::exhaustion

#endif  // ESDP_TESTS_SDP_EXHAUSTION_END_H_
