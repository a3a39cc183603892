#ifndef ESDP_IMPL_SWITCH_ENGINE_PROGRAM_END_H_
#define ESDP_IMPL_SWITCH_ENGINE_PROGRAM_END_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "impl/switch/engine_interface.h"

namespace esdp::switching {

// The end of a stream pair that is not the program's.
//
//   Owns:     nothing: its relay does.
//   Threads:  the engine's.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   as its calls tell.
class ProgramEnd {
 public:
  enum class Result : uint8_t { kMoved, kAgain, kEnded, kReset };

  // `reset`: the program has asked for a reset, and closes after that.
  ProgramEnd(int descriptor, std::shared_ptr<const std::atomic<bool>> reset)
      : descriptor_(descriptor), reset_(std::move(reset)) {}
  // Of any, by any thread: other processes that have the program's end can tell from it which connection
  // it is. Once.
  static void SetNames(int descriptor, const ConnectionNames& names);

  // What the program has written; kEnded: it writes nothing more; kReset: it has closed with a reset,
  // or has left bytes unread.
  // `urgent`: this is one urgent byte.
  Result Read(void* to, size_t room, size_t& got, bool& urgent) const;
  // For the program to read; kEnded: it reads nothing more. `urgent`: the last byte is, where the
  // system has urgent bytes in a stream pair.
  Result Write(const void* from, size_t bytes, size_t& done, bool urgent) const;
  // Of any: from now on what a program writes is looked at for urgent bytes, which costs.
  static void ExpectUrgent();
  // Nothing is left for the program.
  void EndOfInput() const;
  // The program has written something, or its end.
  bool HasSpoken() const;
  // No number of the program leads here any more.
  bool IsClosed() const;

 private:
  int descriptor_;
  std::shared_ptr<const std::atomic<bool>> reset_;
};

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_ENGINE_PROGRAM_END_H_
