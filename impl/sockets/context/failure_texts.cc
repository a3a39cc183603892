#include "impl/sockets/context/failure_texts.h"

#include <iterator>
#include <limits>
#include <new>

namespace esdp::sockets {

uint32_t FailureTexts::Keep(std::string_view text) try {
  if (text.empty()) return 0;
  text = text.substr(0, kBytesMax);
  const std::lock_guard lock(mutex_);
  const uint32_t known = Find(text);
  return known != 0 ? known : Add(text);
} catch (const std::bad_alloc&) {
  return 0;
}

uint32_t FailureTexts::Find(std::string_view text) {
  const auto found = by_text_.find(text);
  if (found == by_text_.end()) return 0;
  texts_.splice(texts_.begin(), texts_, found->second);
  return found->second->number;
}

// Where memory ends in the middle, the place has no text.
uint32_t FailureTexts::Add(std::string_view text) {
  if (texts_.size() < kTextsMax) {
    if (by_place_.size() == by_place_.capacity()) by_place_.reserve(2 * texts_.size() + 16);
    texts_.push_front({static_cast<uint32_t>(texts_.size() + 1), ""});
    by_place_.push_back(texts_.begin());
  } else {
    const auto oldest = std::prev(texts_.end());
    by_text_.erase(oldest->text);
    oldest->text.clear();
    const bool last = oldest->number > std::numeric_limits<uint32_t>::max() - kTextsMax;
    oldest->number = last ? (oldest->number - 1) % kTextsMax + 1 : oldest->number + kTextsMax;
    texts_.splice(texts_.begin(), texts_, oldest);
  }
  Text& added = texts_.front();
  added.text = std::string(text);  // of its own size, whatever stood there
  by_text_.emplace(added.text, texts_.begin());
  return added.number;
}

std::string FailureTexts::Of(uint32_t number) const {
  if (number == 0) return "";
  const std::lock_guard lock(mutex_);
  const size_t place = (number - 1) % kTextsMax;
  if (place >= by_place_.size() || by_place_[place]->number != number) return "";
  return by_place_[place]->text;
}

}  // namespace esdp::sockets
