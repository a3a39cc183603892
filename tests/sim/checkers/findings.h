#ifndef ESDP_TESTS_SIM_CHECKERS_FINDINGS_H_
#define ESDP_TESTS_SIM_CHECKERS_FINDINGS_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace esdp::simulation {

// What the checkers of one run have found wrong. The first ones are kept: what follows a breach is
// mostly its sequel.
class Findings {
 public:
  static constexpr size_t kKept = 20;

  void Add(std::string text) {
    ++count_;
    if (texts_.size() < kKept) texts_.push_back(std::move(text));
  }
  size_t count() const { return count_; }
  bool empty() const { return count_ == 0; }
  const std::vector<std::string>& texts() const { return texts_; }
  // Whether one of them has these words.
  bool Mention(const std::string& words) const {
    for (const std::string& text : texts_) {
      if (text.find(words) != std::string::npos) return true;
    }
    return false;
  }

 private:
  size_t count_ = 0;
  std::vector<std::string> texts_;
};

}  // namespace esdp::simulation

#endif  // ESDP_TESTS_SIM_CHECKERS_FINDINGS_H_
