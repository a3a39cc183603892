#ifndef ESDP_IMPL_EXS_NOTICE_OPTION_H_
#define ESDP_IMPL_EXS_NOTICE_OPTION_H_

#include "absl/time/time.h"

namespace esdp::exs {

// When the application hears that nothing has ended in a direction.
struct NoticeOption {
  absl::Duration period = absl::ZeroDuration();  // 0: never
  bool once = false;
};

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_NOTICE_OPTION_H_
