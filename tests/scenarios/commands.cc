#include <stdexcept>

#include "impl/sdp/wire/codec.h"
#include "tests/scenarios/stage.h"

// The words of a scenario.

namespace esdp::sdp::scenarios {
namespace {

[[noreturn]] void Unknown(const std::string& word) {
  throw std::runtime_error("not understood: " + word);
}

struct Forgery {
  wire::Message message;
  uint32_t payload = 0;
};

// A body with its fields from words `name=value`; false if this body has no such field.
template <typename Body>
bool SetField(Body& body, const std::string& name, uint64_t value) {
  const auto number = [&](auto& field) {
    field = static_cast<std::remove_reference_t<decltype(field)>>(value);
    return true;
  };
  if constexpr (requires { body.length; }) {
    if (name == "len") return number(body.length);
  }
  if constexpr (requires { body.remote_key; }) {
    if (name == "key") return number(body.remote_key);
    if (name == "va") return number(body.virtual_address);
  }
  if constexpr (requires { body.non_discards; }) {
    if (name == "non_discards") return number(body.non_discards);
  }
  if constexpr (requires { body.mode; }) {
    if (name == "s") return number(body.changes_send_half);
    if (name == "mode") return number(body.mode);
  }
  if constexpr (requires { body.desired_size; }) {
    if (name == "size") return number(body.desired_size);
  }
  if constexpr (requires { body.actual_size; }) {
    if (name == "size") return number(body.actual_size);
  }
  if constexpr (requires { body.local_receive_size; }) {
    if (name == "size") return number(body.local_receive_size);
  }
  if constexpr (requires { body.service_id; }) {
    if (name == "service") return number(body.service_id);
  }
  return false;
}

template <size_t kIndex = 0>
wire::Body BodyNamed(const std::string& name) {
  if constexpr (kIndex == std::variant_size_v<wire::Body>) {
    Unknown(name);
  } else {
    wire::Message message;
    message.body.emplace<kIndex>();
    if (wire::NameOf(wire::IdOf(message)) == name) return message.body;
    return BodyNamed<kIndex + 1>(name);
  }
}

void SetWord(Forgery& forgery, const std::string& name, uint64_t value) {
  if (name == "payload") {
    forgery.payload = static_cast<uint32_t>(value);
  } else if (name == "mseq") {
    forgery.message.base.sequence = static_cast<uint32_t>(value);
  } else if (name == "mseqack") {
    forgery.message.base.acknowledged = static_cast<uint32_t>(value);
  } else if (name == "bufs") {
    forgery.message.base.buffers = static_cast<uint16_t>(value);
  } else if (name == "flags") {
    forgery.message.base.flags = static_cast<uint8_t>(value);
  } else if (!std::visit([&](auto& body) { return SetField(body, name, value); },
                         forgery.message.body)) {
    Unknown(name);
  }
}

ModeWish WishNamed(const std::string& name) {
  if (name == "pipelined") return ModeWish::kPipelined;
  if (name == "combined") return ModeWish::kCombined;
  if (name == "buffered") return ModeWish::kBuffered;
  Unknown(name);
}

}  // namespace

Stage::End& Stage::Named(const std::string& name) {
  if (name == "a") return a_;
  if (name == "b") return b_;
  Unknown(name);
}

std::vector<std::string> Stage::Execute(const std::string& command) {
  lines_.clear();
  Words words(command);
  const std::string first = words.Take();
  if (first == "wait") {
    Wait(words);
    return std::move(lines_);
  }
  End& end = Named(first);
  const std::string verb = words.Take();
  if (verb == "is") {
    Set(end, words);
  } else if (verb == "holds") {
    Hold(end, words, true);
  } else if (verb == "frees") {
    Hold(end, words, false);
  } else if (verb == "lets") {
    Let(end, words);
  } else if (verb == "forges") {
    Forge(end, words);
  } else {
    Ask(end, verb, words);
  }
  if (!words.empty()) Unknown(words.Take());
  Settle();
  return std::move(lines_);
}

// What an end is told before it begins.
void Stage::Set(End& end, Words& words) {
  while (!words.empty()) {
    const auto [name, text] = words.TakePair();
    if (name == "speaking_first") {
      a_.config.initiator_speaks_first = b_.config.initiator_speaks_first = true;
    } else if (name == "unexposing") {
      end.exposes = false;
    } else if (name == "deployed") {
      end.config.as_deployed = true;
    } else {
      const uint64_t value = Words::ToNumber(text);
      if (name == "buffers") {
        end.config.receive_buffers = static_cast<uint16_t>(value);
      } else if (name == "size") {
        end.config.receive_buffer_bytes = static_cast<uint32_t>(value);
      } else if (name == "grows_to") {
        end.config.receive_buffer_bytes_max = static_cast<uint32_t>(value);
      } else if (name == "asks_for") {
        end.config.peer_receive_buffer_bytes = static_cast<uint32_t>(value);
      } else if (name == "adverts") {
        end.config.max_adverts = static_cast<uint8_t>(value);
      } else if (name == "invalidates") {
        end.config.remote_invalidate = value != 0;
      } else if (name == "reads") {
        end.reads = static_cast<uint32_t>(value);
      } else if (name == "read_max") {
        end.config.read_bytes_max = static_cast<uint32_t>(value);
      } else {
        Unknown(name);
      }
    }
  }
}

void Stage::Hold(End& end, Words& words, bool held) {
  while (!words.empty()) {
    const std::string what = words.Take();
    if (what == "messages") {
      end.hold_messages = held;
    } else if (what == "reads") {
      end.hold_reads = held;
    } else if (what == "work") {
      end.hold_work = held;
    } else if (what == "withdrawals") {
      end.hold_withdrawn = held;
    } else {
      Unknown(what);
    }
  }
}

// So many of the things that are held happen, each with all that follows.
void Stage::Let(End& end, Words& words) {
  const std::string what = words.Take();
  for (uint64_t left = words.empty() ? 1 : words.TakeNumber(); left > 0; --left) {
    if (what == "message") {
      if (end.outgoing.empty()) throw std::runtime_error("no message is held");
      DeliverOne(PeerOf(end), end);
    } else if (what == "read") {
      const bool held = std::exchange(end.hold_reads, false);
      if (!FinishRead(end, PeerOf(end))) throw std::runtime_error("no read is held");
      end.hold_reads = held;
    } else {
      Unknown(what);
    }
    Settle();
  }
}

void Stage::Ask(End& end, const std::string& verb, Words& words) {
  const auto new_operation = [&end] { return OperationId{++end.operations}; };
  if (verb == "connects") {
    Feed(end, AskConnect{});
    if (words.Take("quietly")) {  // as other scenarios show it
      Settle();
      lines_.clear();
    }
  } else if (verb == "sends") {
    AskToSend(end, words);
  } else if (verb == "receives") {
    AskToReceive(end, words);
  } else if (verb == "cancels") {
    const OperationId operation{static_cast<uint32_t>(words.TakeNumber())};
    const bool abort = words.Take("aborting");
    Feed(end,
         AskCancel{operation, abort ? CancelMode::kAbortConnection : CancelMode::kIfNotStarted});
  } else if (verb == "wants") {
    Feed(end, AskMode{WishNamed(words.Take()), ModeWish::kAutomatic});
  } else if (verb == "suspends") {
    AskSuspend ask;
    ask.operation = new_operation();
    ask.port = static_cast<uint16_t>(words.TakeNumber());
    Feed(end, ask);
  } else if (verb == "awaits") {
    Feed(end, AskUrgent{new_operation()});
  } else if (verb == "shuts") {
    Feed(end, AskShutdown{new_operation()});
  } else if (verb == "closes") {
    Feed(end, AskClose{new_operation(), false});
  } else if (verb == "aborts") {
    Feed(end, AskClose{new_operation(), true});
  } else if (verb == "breaks") {
    end.lost = true;
    end.outgoing.clear();
    end.timers.clear();
    Feed(end, ConnectionLost{.clean = false, .fabric_error = true});
  } else {
    Unknown(verb);
  }
}

void Stage::AskToSend(End& end, Words& words) {
  AskSend ask;
  ask.piece = {OperationId{++end.operations}, static_cast<uint32_t>(words.TakeNumber()), 0};
  ask.exposable = true;
  ask.zcopy_min = end.config.zcopy_send_min;
  while (!words.empty()) {
    if (words.Take("copied")) {
      ask.path = Path::kCopy;
    } else if (words.Take("zero-copy")) {
      ask.path = Path::kZeroCopy;
    } else if (words.Take("urgent")) {
      ask.urgent = true;
    } else if (words.Take("delivered")) {
      ask.complete_at = CompleteAt::kDelivered;
    } else {
      Unknown(words.Take());
    }
  }
  Feed(end, ask);
}

void Stage::AskToReceive(End& end, Words& words) {
  AskReceive ask;
  ask.piece = {OperationId{++end.operations}, static_cast<uint32_t>(words.TakeNumber()), 0};
  ask.placeable = true;
  ask.zcopy_min = end.config.zcopy_receive_min;
  while (!words.empty()) {
    if (words.Take("copied")) {
      ask.path = Path::kCopy;
    } else if (words.Take("zero-copy")) {
      ask.path = Path::kZeroCopy;
    } else if (words.Take("all")) {
      ask.wait_all = true;
    } else if (words.Take("unplaceable")) {
      ask.placeable = false;
    } else {
      Unknown(words.Take());
    }
  }
  Feed(end, ask);
}

// A message that the end's core knows nothing of reaches the peer, with an honest header but for
// what the words say. Behind it the core of this end is of no use.
void Stage::Forge(End& end, Words& words) {
  Forgery forgery;
  forgery.message.body = BodyNamed(words.Take());
  forgery.message.base.sequence = end.sequence + 1;
  forgery.message.base.acknowledged = end.heard;
  forgery.message.base.buffers = end.config.receive_buffers;
  while (!words.empty()) {
    const auto [name, text] = words.TakePair();
    SetWord(forgery, name, Words::ToNumber(text));
  }
  end.sequence = forgery.message.base.sequence;
  end.outgoing.push_back({forgery.message, forgery.payload, {}, end.queue_pair});
}

void Stage::Wait(Words& words) {
  const Time until = now_ + std::chrono::milliseconds(words.TakeNumber());
  for (;;) {
    Settle();
    Time next = until;
    for (const End* end : {&a_, &b_}) {
      for (const auto& [timer, at] : end->timers) {
        if (!end->lost) next = std::min(next, at);
      }
    }
    if (next >= until) break;
    now_ = std::max(now_, next);
  }
  now_ = until;
  Settle();
}

}  // namespace esdp::sdp::scenarios
