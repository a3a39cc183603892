#ifndef ESDP_TESTS_SIM_CHECKERS_WIRE_BOOKS_H_
#define ESDP_TESTS_SIM_CHECKERS_WIRE_BOOKS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>

#include "impl/fabric/sim/wire_observer.h"
#include "impl/sdp/wire/codec.h"
#include "impl/sdp/wire/messages.h"
#include "tests/sim/checkers/findings.h"
#include "tests/sim/checkers/marks.h"

namespace esdp::simulation {

// Whether sequence number `a` comes after `b`.
inline bool Beyond(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) > 0; }

inline size_t PayloadOf(const sdp::wire::Message& message) {
  return message.base.length - sdp::wire::HeaderBytes(sdp::wire::IdOf(message));
}

template <typename T>
const T* Get(const sdp::wire::Message& message) {
  return std::get_if<T>(&message.body);
}

inline const char* NameOf(const sdp::wire::Message& message) {
  return sdp::wire::NameOf(sdp::wire::IdOf(message));
}

// What all checkers of the wire have: a page for each end of each connection, and whom they tell.
// Each sees a message when it leaves and when it arrives. The adapter hears of what arrives a
// little earlier than the core; MSeqAck of the next message tells what the core had heard.
template <typename End>
class WireBooks {
 protected:
  using WireEnd = fabric::sim::WireEnd;

  WireBooks(Findings& findings, Marks& marks) : findings_(&findings), marks_(&marks) {}

  End& Of(const WireEnd& end) { return ends_[{end.connection, end.connecting}]; }
  End& PeerOf(const WireEnd& end) { return ends_[{end.connection, !end.connecting}]; }
  void Find(const WireEnd& where, const std::string& what) {
    findings_->Add("connection " + std::to_string(where.connection) +
                   (where.connecting ? ", connecting side: " : ", accepting side: ") + what);
  }
  Marks& marks() { return *marks_; }

 private:
  Findings* findings_;
  Marks* marks_;
  std::map<std::pair<uint16_t, bool>, End> ends_;
};

}  // namespace esdp::simulation

#endif  // ESDP_TESTS_SIM_CHECKERS_WIRE_BOOKS_H_
