#ifndef ESDP_IMPL_FABRIC_LOCAL_SHARED_BELL_H_
#define ESDP_IMPL_FABRIC_LOCAL_SHARED_BELL_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

namespace esdp::fabric::local {

// All the channels to one other fabric. Whichever of them it is woken by, it looks at every queue
// pair that moved lately: a second one that it looks at so need not wake it, too.
//
//   Owns:     nothing.
//   Threads:  not thread-safe; the word that it looks at is the other fabric's.
//   Blocks:   never.
//   Units:    –
//   Errors:   –
class SharedBell {
 public:
  // Whether the other fabric was woken, and has not begun to look since: it disarms what it was
  // woken by before it looks. Asked after that was published for which it would be woken.
  bool IsRinging() const {
    return armed_ != nullptr && armed_->load(std::memory_order_seq_cst) == rung_;
  }
  // It was woken by the channel whose other end has this word, which said `rung`.
  void OnRung(const std::atomic<uint64_t>& armed, uint64_t rung) {
    armed_ = &armed;
    rung_ = rung;
  }
  // The word is about to go.
  void Forget(const std::atomic<uint64_t>& armed) {
    if (armed_ == &armed) armed_ = nullptr;
  }

 private:
  const std::atomic<uint64_t>* armed_ = nullptr;
  uint64_t rung_ = 0;
};

// One for each fabric that there are channels to.
//
//   Owns:     nothing: a bell lives as long as a channel has it.
//   Threads:  not thread-safe.
//   Blocks:   never.
//   Units:    –
//   Errors:   –
class SharedBells {
 public:
  SharedBells() = default;
  SharedBells(const SharedBells&) = delete;
  SharedBells& operator=(const SharedBells&) = delete;

  // `process` is what the system says of the other side; `fabric` is what that says of itself, and
  // no proof: a process that names a fabric of another one gets a bell apart. Neither is 0 where it
  // is known; who is not known shares with nobody. This must outlive what it gives.
  std::shared_ptr<SharedBell> Of(pid_t process, uint64_t fabric) {
    if (process == 0 || fabric == 0) return std::make_shared<SharedBell>();
    const Key key{process, fabric};
    std::weak_ptr<SharedBell>& known = bells_[key];
    if (std::shared_ptr<SharedBell> bell = known.lock()) return bell;
    const auto forget = [this, key](const SharedBell* bell) {
      bells_.erase(key);
      delete bell;
    };
    std::shared_ptr<SharedBell> bell(new SharedBell, forget);
    known = bell;
    return bell;
  }

 private:
  using Key = std::pair<pid_t, uint64_t>;
  std::map<Key, std::weak_ptr<SharedBell>> bells_;
};

}  // namespace esdp::fabric::local

#endif  // ESDP_IMPL_FABRIC_LOCAL_SHARED_BELL_H_
