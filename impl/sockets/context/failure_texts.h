#ifndef ESDP_IMPL_SOCKETS_CONTEXT_FAILURE_TEXTS_H_
#define ESDP_IMPL_SOCKETS_CONTEXT_FAILURE_TEXTS_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace esdp::sockets {

// Texts of failures under small numbers, so that an Event can name one and stay a plain value. A
// new one beyond the bound takes the place of the one that was kept longest ago.
//
//   Owns:     the texts, each cut at kBytesMax.
//   Threads:  any.
//   Blocks:   never.
//   Units:    -
//   Errors:   0 is "no text": also where there is no memory for it.
class FailureTexts {
 public:
  static constexpr size_t kTextsMax = 4096;
  static constexpr size_t kBytesMax = 1024;

  uint32_t Keep(std::string_view text);
  // Empty where it is kept no longer.
  std::string Of(uint32_t number) const;
  // What each call takes.
  std::mutex& mutex() { return mutex_; }

 private:
  struct Text {
    uint32_t number = 0;  // grows by kTextsMax with each text in this place
    std::string text;
  };
  using Texts = std::list<Text>;

  uint32_t Find(std::string_view text);
  uint32_t Add(std::string_view text);

  mutable std::mutex mutex_;
  Texts texts_;  // the one that was kept last is the first
  std::vector<Texts::iterator> by_place_;
  std::unordered_map<std::string_view, Texts::iterator> by_text_;  // the views are of texts_
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_CONTEXT_FAILURE_TEXTS_H_
