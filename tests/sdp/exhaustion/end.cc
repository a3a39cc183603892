#include "tests/sdp/exhaustion/end.h"

#include <algorithm>

namespace esdp::sdp::exhaustion {
namespace {

constexpr uint16_t kReturnPort = 7;

char TokenAt(uint8_t number, size_t offset) { return static_cast<char>(number * 64u + offset); }

Actions& Scratch() {
  static Actions actions;  // one for all: a search takes millions of steps
  actions.clear();
  return actions;
}

}  // namespace

void End::Wrong(const std::string& what) {
  if (wrong.empty()) wrong = what;
}

// --- the application ---

void End::Make(const Ask& ask, Time now) {
  const OperationId id{ask.number};
  if (ask.kind != Ask::Kind::kCancel && ask.kind != Ask::Kind::kMode) {
    Operation operation;
    operation.kind = ask.kind;
    operation.number = ask.number;
    operation.memory.resize(ask.length);
    if (ask.kind == Ask::Kind::kSend) {
      for (size_t i = 0; i < ask.length; ++i) operation.memory[i] = TokenAt(ask.number, i);
      sends.push_back(ask.number);
    }
    operations.push_back(operation);
  }
  const OperationRange whole{id, ask.length, 0};
  const Path path = ask.direct ? Path::kZeroCopy : Path::kCopy;
  switch (ask.kind) {
    case Ask::Kind::kSend: {
      AskSend send;
      send.piece = whole;
      send.exposable = ask.direct;
      send.path = path;
      send.urgent = ask.urgent;
      send.complete_at = ask.delivered ? CompleteAt::kDelivered : CompleteAt::kReusable;
      return Feed(send, now);
    }
    case Ask::Kind::kReceive: {
      AskReceive receive;
      receive.piece = whole;
      receive.wait_all = ask.wait_all;
      receive.placeable = ask.direct;
      receive.path = path;
      return Feed(receive, now);
    }
    case Ask::Kind::kCancel:
      return Feed(AskCancel{id, CancelMode::kIfNotStarted, Outcome::kCancelled}, now);
    case Ask::Kind::kShutdown:
      return Feed(AskShutdown{id}, now);
    case Ask::Kind::kClose:
      return Feed(AskClose{id, false}, now);
    case Ask::Kind::kAbort:
      return Feed(AskClose{id, true}, now);
    case Ask::Kind::kMode:
      return Feed(AskMode{ask.wish, ModeWish::kAutomatic}, now);
    case Ask::Kind::kAwaitUrgent:
      return Feed(AskUrgent{id}, now);
    case Ask::Kind::kSuspend:
      return Feed(AskSuspend{id, kReturnPort, kTimeInfinite}, now);
  }
}

Operation* End::Find(OperationId id) {
  for (Operation& operation : operations) {
    if (OperationId{operation.number} == id) return &operation;
  }
  Wrong("an operation that nobody asked for");
  return nullptr;
}

const Operation* End::Find(uint8_t number) const {
  for (const Operation& operation : operations) {
    if (operation.number == number) return &operation;
  }
  return nullptr;
}

bool End::ended(uint8_t number) const {
  const Operation* operation = Find(number);
  return operation != nullptr && operation->result.has_value();
}

// --- memory ---

char* End::At(const OperationRange& range) {
  Operation* operation = Find(range.operation);
  if (operation == nullptr) return nullptr;
  if (operation->result && !lost) Wrong("memory of an operation that has ended is touched");
  if (range.offset + range.length > operation->memory.size()) {
    Wrong("memory beyond the operation's is touched");
    return nullptr;
  }
  return operation->memory.data() + range.offset;
}

Exposure* End::FindKey(uint32_t key) {
  for (Exposure& exposure : exposures) {
    if (exposure.key == key && exposure.live) return &exposure;
  }
  return nullptr;
}

char* End::Reach(const RemoteRange& place, uint32_t length, Right right) {
  const Exposure* exposure = FindKey(place.key);
  if (exposure == nullptr || exposure->right != right) {
    Wrong("the peer touches memory that is not exposed to it");
    return nullptr;
  }
  const uint64_t begin = place.address - kWindowAddress;
  if (begin < exposure->range.offset ||
      begin + length > exposure->range.offset + exposure->range.length) {
    Wrong("the peer touches memory beyond what was exposed");
    return nullptr;
  }
  return At({exposure->range.operation, length, begin});
}

size_t End::adverts_out() const {
  return static_cast<size_t>(std::count_if(exposures.begin(), exposures.end(),
                                           [](const Exposure& it) { return !it.withdrawing; }));
}

// --- the core ---

void End::Feed(const Input& input, Time now) {
  Actions& actions = Scratch();
  core.Step(input, now, actions);
  for (const Action& action : actions) {
    if (log != nullptr) *log += "      " + ToText(action) + "\n";
    std::visit([this](const auto& it) { Act(it); }, action);
  }
}

void End::FinishSend(Time now) {
  const sdp::Send send = unfinished.front();
  unfinished.erase(unfinished.begin());
  for (uint32_t i = 0; i < send.gather_count; ++i) {
    if (Operation* operation = Find(send.gather[i].operation)) --operation->gathers;
  }
  if (send.send_buffer) send_memory[static_cast<uint16_t>(*send.send_buffer)].clear();
  Feed(SendFinished{}, now);
}

// The provider lets go of everything, then tells.
void End::Lose(bool clean, Time now) {
  lost = true;
  if (disconnect && !disconnect->orderly) outgoing.clear();
  unfinished.clear();
  reading.clear();
  writing.clear();
  posted.clear();
  exposures.clear();
  to_prepare.reset();
  for (Operation& it : operations) it.gathers = it.reads = it.writes = it.exposures = 0;
  Feed(ConnectionLost{clean, false}, now);
}

}  // namespace esdp::sdp::exhaustion
