#ifndef ESDP_IMPL_BASE_UNDO_H_
#define ESDP_IMPL_BASE_UNDO_H_

#include <utility>

namespace esdp {

// Takes a step back when the scope is left, by an error or for want of memory, before Cancel.
template <typename Step>
class Undo {
 public:
  explicit Undo(Step step) : step_(std::move(step)) {}
  ~Undo() {
    if (armed_) step_();
  }
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;

  void Cancel() { armed_ = false; }

 private:
  Step step_;
  bool armed_ = true;
};

}  // namespace esdp

#endif  // ESDP_IMPL_BASE_UNDO_H_
