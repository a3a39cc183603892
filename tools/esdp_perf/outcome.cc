#include "tools/esdp_perf/outcome.h"

namespace esdp_perf {

Fields ToFields(const Outcome& outcome) {
  Fields fields;
  fields.Set("bytes_sent", outcome.bytes_sent);
  fields.Set("bytes_received", outcome.bytes_received);
  fields.Set("sends", outcome.sends);
  fields.Set("bytes_zero_copy", outcome.bytes_zero_copy);
  fields.Set("copied_bytes", outcome.copied_bytes);
  fields.Set("send_seconds", outcome.send_seconds);
  fields.Set("receive_seconds", outcome.receive_seconds);
  fields.Set("cpu_seconds", outcome.cpu_seconds);
  fields.Set("sha256", outcome.sha256);
  fields.Set("transport", outcome.transport);
  return fields;
}

Outcome OutcomeFromFields(const Fields& fields) {
  Outcome outcome;
  outcome.bytes_sent = fields.Number("bytes_sent");
  outcome.bytes_received = fields.Number("bytes_received");
  outcome.sends = fields.Number("sends");
  outcome.bytes_zero_copy = fields.Number("bytes_zero_copy");
  outcome.copied_bytes = fields.Number("copied_bytes");
  outcome.send_seconds = fields.Real("send_seconds");
  outcome.receive_seconds = fields.Real("receive_seconds");
  outcome.cpu_seconds = fields.Real("cpu_seconds");
  outcome.sha256 = fields.Text("sha256");
  outcome.transport = fields.Text("transport");
  return outcome;
}

}  // namespace esdp_perf
