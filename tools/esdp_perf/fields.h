#ifndef ESDP_TOOLS_ESDP_PERF_FIELDS_H_
#define ESDP_TOOLS_ESDP_PERF_FIELDS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace esdp_perf {

// A control message: lines of "name=value". Values hold no newline.
class Fields {
 public:
  void Set(const std::string& name, std::string_view value) { values_[name] = value; }
  void Set(const std::string& name, const char* value) { values_[name] = value; }
  void Set(const std::string& name, uint64_t value) { values_[name] = std::to_string(value); }
  void Set(const std::string& name, double value);

  bool Has(const std::string& name) const { return values_.contains(name); }
  // Empty or 0 where the field is missing or is no number.
  std::string Text(const std::string& name) const;
  uint64_t Number(const std::string& name) const;
  double Real(const std::string& name) const;

  std::string Encode() const;
  // Nothing if a line has no '=' or a name comes twice.
  static std::optional<Fields> Decode(std::string_view text);

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace esdp_perf

#endif  // ESDP_TOOLS_ESDP_PERF_FIELDS_H_
