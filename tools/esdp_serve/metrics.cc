#include "tools/esdp_serve/metrics.h"

#include <esdp_files.pb.h>

#include <string_view>

namespace esdp_serve {
namespace {

void AddHelp(std::string_view name, std::string_view type, std::string_view help,
             std::string& text) {
  text.append("# HELP esdp_serve_").append(name).append(" ").append(help).append("\n");
  text.append("# TYPE esdp_serve_").append(name).append(" ").append(type).append("\n");
}

void AddValue(std::string_view name, uint64_t value, std::string& text) {
  text.append("esdp_serve_").append(name).append(" ").append(std::to_string(value)).append("\n");
}

}  // namespace

std::string MetricsText(const Metrics& metrics) {
  struct Line {
    const char* name;
    const char* type;
    const char* help;
    const Metrics::Count& value;
  };
  const Line lines[] = {
      {"clients", "gauge", "Clients that are connected.", metrics.clients},
      {"slots_in_use", "gauge", "Slots that hold something on its way.", metrics.slots_in_use},
      {"clients_accepted_total", "counter", "Clients that were taken.", metrics.clients_accepted},
      {"clients_refused_total", "counter", "Clients told that there are too many.",
       metrics.clients_refused},
      {"clients_stalled_total", "counter", "Clients ended because they took nothing.",
       metrics.clients_stalled},
      {"clients_late_total", "counter", "Clients ended because they asked nothing.",
       metrics.clients_late},
      {"clients_misbehaved_total", "counter", "Clients ended because they broke the protocol.",
       metrics.clients_misbehaved},
      {"requests_total", "counter", "Requests that were answered.", metrics.requests},
      {"cached_files_total", "counter", "Small files that were open and in memory already.",
       metrics.cached_files},
      {"sent_bytes_total", "counter", "Bytes of files that went out.", metrics.sent_bytes},
      {"sent_zero_copy_bytes_total", "counter", "Of these, without a copy by esdp.",
       metrics.sent_zero_copy_bytes},
      {"received_bytes_total", "counter", "Bytes of files that came in.", metrics.received_bytes},
      {"failed_files_total", "counter", "Files that ended early, failed or changed on the way.",
       metrics.failed_files},
  };
  std::string text;
  for (const Line& line : lines) {
    AddHelp(line.name, line.type, line.help, text);
    AddValue(line.name, line.value.load(), text);
  }
  AddHelp("answers_total", "counter", "Answers, by what they said.", text);
  for (size_t i = 0; i < Metrics::kStatuses; ++i) {
    const auto& name = esdp_files::wire::Status_Name(static_cast<esdp_files::wire::Status>(i));
    AddValue("answers_total{status=\"" + name + "\"}", metrics.answers[i].load(), text);
  }
  return text;
}

}  // namespace esdp_serve
