#ifndef ESDP_TESTS_SCENARIOS_STAGE_H_
#define ESDP_TESTS_SCENARIOS_STAGE_H_

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "impl/sdp/connection.h"
#include "tests/scenarios/words.h"

// Two cores that talk over a wire in memory, step by step as a scenario says, and everything that
// they do as lines of text. Only sizes move, no bytes: that these arrive unchanged is tested
// elsewhere. Whatever can happen happens at once, in one fixed order, but for what is held.

namespace esdp::sdp::scenarios {

class Stage {
 public:
  // Not `immediate`: a small send takes the queue, whatever is before it.
  explicit Stage(bool immediate);

  // Executes one command and lets everything happen that follows from it. Returns what happened,
  // line by line. docs/testing.md lists the commands.
  std::vector<std::string> Execute(const std::string& command);

 private:
  struct Flight {
    wire::Message message;
    uint32_t payload = 0;
    std::optional<uint32_t> invalidate;
    int queue_pair = 0;
  };
  struct Exposure {
    RemoteRange remote;
    OperationRange range;
    Right right = Right::kRemoteRead;
    bool live = true;
  };
  using Work = std::variant<sdp::Send, Read, Write>;

  struct End {
    explicit End(const char* name_given, bool connecting);

    std::string name;
    Config config;
    std::optional<Connection> core;  // made by the first command that needs it
    uint32_t reads = 4;              // in flight at one time
    bool exposes = true;
    uint32_t operations = 0;
    uint32_t keys = 0;
    uint32_t sequence = 0, heard = 0;  // of its last message on the wire, and of the peer's

    std::optional<wire::Message> hello, hello_ack;
    bool established = false, lost = false;
    bool awaits_hello = false;
    int queue_pair = 0;  // the first, second, ... of the connection
    std::optional<Disconnect> disconnect;
    std::deque<ReceiveBuffer> posted;
    std::deque<Work> work;        // not begun
    std::deque<Flight> outgoing;  // on the wire
    size_t sends_unfinished = 0;
    size_t writes_unfinished = 0;
    std::deque<Read> reading;
    std::map<AdvertId, Exposure> exposures;
    std::deque<AdvertId> withdrawing;
    std::map<Timer, Time> timers;

    // What does not happen by itself.
    bool hold_messages = false;  // those that it has sent stay on the wire
    bool hold_reads = false;     // those that it has begun do not finish
    bool hold_work = false;      // what it has posted is not begun
    bool hold_withdrawn = false;
  };

  // --- commands.cc ---
  void Set(End& end, Words& words);
  void Hold(End& end, Words& words, bool held);
  void Let(End& end, Words& words);
  void Ask(End& end, const std::string& verb, Words& words);
  void AskToSend(End& end, Words& words);
  void AskToReceive(End& end, Words& words);
  void Forge(End& end, Words& words);
  void Wait(Words& words);

  // --- stage.cc: what follows ---
  void Feed(End& end, const Input& input);
  void Run(End& end, const Action& action);
  void Settle();
  bool HappenAt(End& end, End& peer);
  bool SetUp(End& end, End& peer);
  bool BeginWork(End& end, End& peer);
  bool HasFlight(const End& peer, const End& end) const;
  bool Deliver(End& end, End& peer);
  void DeliverOne(End& end, End& peer);
  bool FinishRead(End& end, End& peer);
  bool Finish(End& end, End& peer);
  bool Lose(End& end, End& peer);
  void Say(const End& end, const std::string& what) { lines_.push_back(end.name + " " + what); }
  bool Reaches(End& peer, uint32_t key, uint64_t address, uint32_t length, Right right) const;
  End& PeerOf(const End& end) { return &end == &a_ ? b_ : a_; }
  End& Named(const std::string& name);

  template <typename T>
  void Act(End&, const T&) {}  // leaves no trace
  void Act(End& end, const StartConnect& action);
  void Act(End& end, const AcceptConnection& action);
  void Act(End& end, const RejectConnection& action);
  void Act(End& end, const ReplaceQueuePair& action);
  void Act(End& end, const AwaitHello& action);
  void Act(End& end, const Farewell& action);
  void Act(End& end, const ReportConnected& action);
  void Act(End& end, const Disconnect& action);
  void Act(End& end, const ReportClosed& action);
  void Act(End& end, const PostReceive& action);
  void Act(End& end, const PrepareReceives& action);
  void Act(End& end, const RetireReceive& action);
  void Act(End&, const ReportReadiness&) {}
  void Act(End& end, const sdp::Send& action);
  void Act(End& end, const Read& action);
  void Act(End& end, const Write& action);
  void Act(End& end, const Expose& action);
  void Act(End& end, const Withdraw& action);
  void Act(End& end, const FinishOperation& action);
  void Act(End& end, const SetTimer& action);
  void Act(End& end, const ClearTimer& action);

  End a_, b_;
  Time now_{};
  std::optional<AdvertId> to_expose_;
  bool to_prepare_ = false;
  std::vector<std::string> lines_;
};

}  // namespace esdp::sdp::scenarios

#endif  // ESDP_TESTS_SCENARIOS_STAGE_H_
