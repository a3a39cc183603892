#ifndef ESDP_TOOLS_ESDP_GET_CONNECTION_H_
#define ESDP_TOOLS_ESDP_GET_CONNECTION_H_

#include <esdp_files.pb.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "esdp/context.h"
#include "tools/esdp_files/frame.h"

namespace esdp_get {

// A Connection asks a server, and reads its answers in order.
//
//   Owns:     the Context, and what has come and was not taken yet.
//   Threads:  one.
//   Blocks:   Ask seldom, all that reads until it is there, or nothing has come for kPatience.
//   Units:    bytes.
//   Errors:   of the connection: it is of no use any more then. What the server says no to is in
//             the answer.
class Connection {
 public:
  static constexpr absl::Duration kPatience = absl::Minutes(2);

  // Connects, and has said Hello. `weight`: shares to ask for, of those that the server gives; 0: all.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const std::string& fabric,
                                                          const esdp::Address& server,
                                                          uint32_t weight = 0);
  ~Connection();

  // The request gets an id. No more than may_ask() of them.
  absl::Status Ask(esdp_files::wire::Request request);
  size_t may_ask() const { return requests_max_ - asked_.size(); }
  // Of the oldest request that has none. `another_follows`: one that is OK is not the last to it.
  absl::StatusOr<esdp_files::wire::Answer> NextAnswer(bool another_follows = false);
  // One more to a request that has one. It takes the server its time, so that kPatience does not count.
  absl::StatusOr<esdp_files::wire::Answer> SecondAnswer(uint64_t id);
  bool has(esdp_files::wire::Feature feature) const {
    return (features_ & static_cast<uint64_t>(feature)) != 0;
  }
  // Both, where nothing else was asked.
  absl::StatusOr<esdp_files::wire::Answer> Get(esdp_files::wire::Request request);
  // From here on what the server says is received, and heard() tells that it has said something.
  absl::Status Listen();
  bool heard() const { return ended_.contains(static_cast<uint64_t>(fill_)); }
  // Behind a tail with an error: what has no answer yet is asked again.
  absl::Status Resync();

  // Bytes of a file, from what has come already and then from the stream.
  absl::Status ReadRaw(std::span<std::byte> bytes);
  size_t buffered() const { return reader_.left(); }

  esdp::Context& context() { return context_; }
  esdp::Socket& socket() { return socket_; }
  esdp::OpArgs Args() { return {.queue = queue_}; }
  // The event of an operation, also one that tells of an error.
  absl::StatusOr<esdp::Event> Await(esdp::OpId op);

 private:
  absl::Status Connect(const std::string& fabric, const esdp::Address& server);
  absl::Status Greet(uint32_t weight);
  absl::Status Send(const esdp_files::wire::Request& request);
  absl::Status Fill();
  absl::StatusOr<esdp_files::wire::Answer> ReadAnswer(std::optional<uint64_t> id);

  esdp::Context context_;
  esdp::EventQueue queue_;
  esdp::Socket socket_;
  std::vector<std::byte> buffer_;
  esdp_files::FrameReader reader_;
  std::deque<esdp_files::wire::Request> asked_;  // without an answer
  absl::Duration patience_ = kPatience;
  size_t requests_max_ = 1;
  uint64_t features_ = 0;  // of the server
  uint64_t next_id_ = 1;
  esdp::OpId last_send_ = esdp::OpId::kNone;
  esdp::OpId fill_ = esdp::OpId::kNone;              // a receive into the buffer
  std::unordered_map<uint64_t, esdp::Event> ended_;  // and not awaited yet
};

// What an answer says, as a status.
absl::Status StatusOf(const esdp_files::wire::Answer& answer);
absl::Status StatusOf(esdp_files::wire::Status status, const std::string& text);

}  // namespace esdp_get

#endif  // ESDP_TOOLS_ESDP_GET_CONNECTION_H_
