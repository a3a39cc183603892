#ifndef ESDP_IMPL_SWITCH_ENGINE_PROGRAM_END_H_
#define ESDP_IMPL_SWITCH_ENGINE_PROGRAM_END_H_

#include <cstddef>
#include <cstdint>

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

  explicit ProgramEnd(int descriptor) : descriptor_(descriptor) {}

  // What the program has written; kEnded: it writes nothing more; kReset: it has closed, and left
  // bytes unread.
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
};

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_ENGINE_PROGRAM_END_H_
