#include "impl/sdp/unexpected_messages.h"

#include <variant>

namespace esdp::sdp {
namespace {

OtherAnswer Violation(const char* reason) { return {Outcome::kPeerProtocol, reason}; }

struct Answerer {
  // [R17.2]
  OtherAnswer operator()(const wire::Hello&) const {
    return Violation("Hello: the connection is established");
  }
  OtherAnswer operator()(const wire::HelloAck&) const {
    return Violation("HelloAck: the connection is established");
  }
  // Answers to what was never asked: ignored [R11.11, R12.9]. The rest has its own place in
  // connection.
  template <typename Message>
  OtherAnswer operator()(const Message&) const {
    return {};
  }
};

}  // namespace

OtherAnswer AnswerOther(const wire::Body& body) { return std::visit(Answerer{}, body); }

}  // namespace esdp::sdp
