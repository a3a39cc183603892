#ifndef ESDP_TESTS_SIM_CHECKERS_MARKS_H_
#define ESDP_TESTS_SIM_CHECKERS_MARKS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace esdp::simulation {

// States that a campaign must have reached, by name, and how often it has.
class Marks {
 public:
  void Hit(const std::string& name, uint64_t times = 1) { counts_[name] += times; }
  void Merge(const Marks& other) {
    for (const auto& [name, count] : other.counts_) counts_[name] += count;
  }
  uint64_t Count(const std::string& name) const {
    const auto found = counts_.find(name);
    return found == counts_.end() ? 0 : found->second;
  }
  const std::map<std::string, uint64_t>& counts() const { return counts_; }
  // The required ones that were never reached.
  std::vector<std::string> Missing() const;

 private:
  std::map<std::string, uint64_t> counts_;
};

// Everything that a campaign has to reach.
const std::vector<std::string>& RequiredMarks();

}  // namespace esdp::simulation

#endif  // ESDP_TESTS_SIM_CHECKERS_MARKS_H_
