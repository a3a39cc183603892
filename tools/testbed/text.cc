#include "tools/testbed/text.h"

#include <fstream>
#include <sstream>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "testbed.pb.h"

namespace esdp::testbed {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using ParseInfoTree = google::protobuf::TextFormat::ParseInfoTree;

constexpr int kSingular = -1;  // the place of a field that is not repeated

// The first thing that is wrong.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (!text.empty()) return;
    if (line >= 0) text = std::to_string(line + 1) + ":" + std::to_string(column + 1) + ": ";
    text += message;
  }
  std::string text;
};

void Collect(const Message& group, const std::string& prefix, ParseInfoTree* places,
             std::vector<Number>& numbers) {
  const auto& fields = *group.GetDescriptor();
  for (int i = 0; i < fields.field_count(); ++i) {
    const Message& field = group.GetReflection()->GetMessage(group, fields.field(i));
    const auto& quantity = static_cast<const Quantity&>(field);
    numbers.push_back({prefix + "." + fields.field(i)->name(), quantity.value(), quantity.unit(),
                       quantity.source(), Knowledge_Name(quantity.known()),
                       places->GetLocation(fields.field(i), kSingular).line + 1});
  }
}

}  // namespace

absl::StatusOr<Description> ParseText(const std::string& text) {
  Testbed parsed;
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  ParseInfoTree places;
  parser.WriteLocationsTo(&places);
  if (!parser.ParseFromString(text, &parsed)) return absl::InvalidArgumentError(error.text);
  Description description{.name = parsed.name(), .numbers = {}};
  const auto& groups = *parsed.GetDescriptor();
  for (int i = 0; i < groups.field_count(); ++i) {
    const FieldDescriptor* field = groups.field(i);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    Collect(parsed.GetReflection()->GetMessage(parsed, field), field->name(),
            places.GetTreeForNested(field, kSingular), description.numbers);
  }
  return description;
}

absl::StatusOr<Description> ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return absl::NotFoundError(path + " cannot be read");
  absl::StatusOr<Description> description = ParseText(text.str());
  if (description.ok()) return description;
  const std::string why(description.status().message().data(),
                        description.status().message().size());
  const bool has_line = why[0] >= '0' && why[0] <= '9';
  return absl::InvalidArgumentError(path + (has_line ? ":" : ": ") + why);
}

}  // namespace esdp::testbed
