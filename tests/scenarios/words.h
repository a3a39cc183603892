#ifndef ESDP_TESTS_SCENARIOS_WORDS_H_
#define ESDP_TESTS_SCENARIOS_WORDS_H_

#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace esdp::sdp::scenarios {

// The words of a command. What is not understood is a std::runtime_error.
class Words {
 public:
  explicit Words(const std::string& line) {
    std::istringstream stream(line);
    for (std::string word; stream >> word;) words_.push_back(word);
  }

  bool empty() const { return next_ == words_.size(); }
  std::string Take() {
    if (empty()) throw std::runtime_error("a word is missing");
    return words_[next_++];
  }
  uint64_t TakeNumber() { return ToNumber(Take()); }
  // Takes the next word if it is this one.
  bool Take(const std::string& word) {
    if (empty() || words_[next_] != word) return false;
    ++next_;
    return true;
  }
  // A word `name=value`, split.
  std::pair<std::string, std::string> TakePair() {
    const std::string word = Take();
    const size_t place = word.find('=');
    if (place == std::string::npos) return {word, ""};
    return {word.substr(0, place), word.substr(place + 1)};
  }

  static uint64_t ToNumber(const std::string& text) {
    size_t used = 0;
    const uint64_t value = std::stoull(text, &used, 0);
    if (used != text.size()) throw std::runtime_error("no number: " + text);
    return value;
  }

 private:
  std::vector<std::string> words_;
  size_t next_ = 0;
};

}  // namespace esdp::sdp::scenarios

#endif  // ESDP_TESTS_SCENARIOS_WORDS_H_
