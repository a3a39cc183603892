#include "tests/sdp/action_digest.h"

#include <array>
#include <cstddef>
#include <string_view>
#include <variant>

#include "impl/base/digest.h"
#include "impl/sdp/wire/codec.h"

namespace esdp::sdp::testing {
namespace {

struct Reader {
  Digest digest;

  template <typename... Values>
  void Add(Values... values) {
    (digest.Add(static_cast<uint64_t>(values)), ...);
  }
  void Add(const char* text) {
    for (const char letter : std::string_view(text)) Add(letter);
  }
  void Add(const wire::Message& message) {
    std::array<std::byte, wire::kHelloAckBytes> bytes{};
    const size_t length = wire::Encode(message, 0, bytes);
    for (size_t i = 0; i < length; ++i) Add(bytes[i]);
  }
  void Add(const OperationRange& it) { Add(it.operation, it.length, it.offset); }
  void Add(const RemoteRange& it) { Add(it.key, it.address); }

  void operator()(const StartConnect& it) { Add(it.hello), Add(it.port.value_or(0)); }
  void operator()(const AcceptConnection& it) { Add(it.hello_ack); }
  void operator()(const RejectConnection& it) { Add(it.reason); }
  void operator()(const ReplaceQueuePair&) {}
  void operator()(const AwaitHello&) {}
  void operator()(const Farewell& it) { Add(it.hello), Add(it.port); }
  void operator()(const ReportConnected&) {}
  void operator()(const Disconnect& it) { Add(it.orderly, it.cause), Add(it.reason); }
  void operator()(const ReportClosed& it) { Add(it.cause), Add(it.reason); }
  void operator()(const PostReceive& it) { Add(it.buffer, it.bytes); }
  void operator()(const PrepareReceives& it) { Add(it.bytes, it.buffers); }
  void operator()(const RetireReceive& it) { Add(it.buffer); }
  void operator()(const Send& it) {
    Add(it.message);
    Add(it.send_buffer.has_value(), it.send_buffer.value_or(SendBuffer{}), it.copied_bytes);
    for (uint32_t i = 0; i < it.gather_count; ++i) Add(it.gather[i]);
    Add(it.invalidate_key.has_value(), it.invalidate_key.value_or(0));
  }
  void operator()(const Read& it) { Add(it.target), Add(it.source); }
  void operator()(const Write& it) { Add(it.source), Add(it.target); }
  void operator()(const CopyIn& it) { Add(it.buffer, it.buffer_offset), Add(it.target); }
  void operator()(const CopyOut& it) { Add(it.buffer, it.buffer_offset), Add(it.source); }
  void operator()(const Expose& it) { Add(it.advert, it.right), Add(it.range); }
  void operator()(const Withdraw& it) { Add(it.advert, it.already_invalidated); }
  void operator()(const FinishOperation& it) {
    Add(it.operation, it.outcome, it.urgent, it.end_of_stream, it.written);
    Add(it.bytes, it.bytes_zero_copy, it.stream_offset);
  }
  void operator()(const ReportReadiness& it) {
    Add(it.readiness.readable, it.readiness.writable, it.readiness.urgent, it.readiness.ended);
  }
  void operator()(const SetTimer& it) { Add(it.timer, it.at.time_since_epoch().count()); }
  void operator()(const ClearTimer& it) { Add(it.timer); }
};

}  // namespace

uint64_t DigestOf(const Action& action) {
  Reader reader;
  reader.Add(action.index());
  std::visit(reader, action);
  return reader.digest.value();
}

std::vector<uint64_t> DigestsOf(const std::vector<Action>& actions) {
  std::vector<uint64_t> digests;
  digests.reserve(actions.size());
  for (const Action& action : actions) digests.push_back(DigestOf(action));
  return digests;
}

}  // namespace esdp::sdp::testing
