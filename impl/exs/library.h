#ifndef ESDP_IMPL_EXS_LIBRARY_H_
#define ESDP_IMPL_EXS_LIBRARY_H_

#include <sys/types.h>

#include <mutex>
#include <string>

#include "esdp/context.h"
#include "impl/exs/helper.h"
#include "impl/exs/inner_queue.h"
#include "impl/exs/memory_table.h"
#include "impl/exs/numbers.h"
#include "impl/exs/pins.h"
#include "impl/exs/plain_listener.h"
#include "impl/exs/plain_stream.h"
#include "impl/exs/polls.h"
#include "impl/exs/prober.h"
#include "impl/exs/waiters.h"

namespace esdp::exs {

// The Library is what exs_init opens: one Context, and the tables of what the process has made
// through it. It is never freed, so that threads may go on using it while the process exits; a
// child of fork leaves its parent's alone and opens its own.
//
//   Owns:     all of it.
//   Threads:  any.
//   Blocks:   Open, as long as the fabric takes.
//   Units:    -
//   Errors:   an errno, 0 for none.
class Library {
 public:
  // EBUSY when it is open over another fabric.
  static int Open(const std::string& fabric);
  // Null before Open, and in a child of fork.
  static Library* Current();
  // Why there is none: ENXIO or EPERM.
  static int WhyNot();
  // Whether the number is a socket that a parent made.
  static bool IsParents(int number);

  Context& context() { return context_; }
  MemoryTable& memory() { return memory_; }
  Numbers& numbers() { return numbers_; }
  Helper& helper() { return helper_; }
  Polls& polls() { return polls_; }
  PlainListeners& listeners() { return listeners_; }
  PlainStreams& streams() { return streams_; }
  Pins& pins() { return pins_; }
  InnerQueue& inner() { return inner_; }
  Waiters& waiters() { return waiters_; }
  Prober& prober() { return prober_; }
  // False in a child that shares its memory, or has its handlers of fork behind it.
  bool IsOfThisProcess() const;
  // Once, when the process exits.
  static void Flush();
  // Whoever makes a number of the program's ours: two threads may try that with the same one.
  std::mutex& adopting() { return adopting_; }
  // Nobody hears of its end.
  void CloseInBackground(Socket& socket, CloseMode mode);

 private:
  Library();
  static void BeforeFork();
  static void AfterForkInParent();
  static void AfterForkInChild();
  int OpenContext(const std::string& fabric);

  const pid_t process_;
  std::string fabric_;
  Context context_;
  Helper helper_{context_};
  EventQueue background_;
  std::mutex background_mutex_;
  std::mutex adopting_;
  MemoryTable memory_;
  Numbers numbers_;
  Polls polls_;
  PlainListeners listeners_;
  PlainStreams streams_;
  Pins pins_;
  InnerQueue inner_{*this};
  Waiters waiters_;
  Prober prober_{context_};
};

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_LIBRARY_H_
