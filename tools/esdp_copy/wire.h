#ifndef ESDP_TOOLS_ESDP_COPY_WIRE_H_
#define ESDP_TOOLS_ESDP_COPY_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

// What the two sides say to each other, one connection for each file:
//
//   client: Request   server: Answer (kGoOn and from which byte, or kFailed)
//   client: the bytes from there on; then the SHA-256 of the whole file
//   server: Answer (kDone, or kFailed; the latter also at any time before)

namespace esdp_copy {

inline constexpr size_t kRecordBytes = 512;  // of a Request, and of an Answer
using Record = std::span<std::byte, kRecordBytes>;

struct Request {
  std::string name;  // in the server's folder, without a path
  uint64_t size = 0;
  bool resume = false;  // go on behind what an earlier run has left
};

struct Answer {
  enum class State : uint8_t { kGoOn = 1, kDone = 2, kFailed = 3 };
  State state = State::kFailed;
  bool again = false;   // kFailed: another run may go on from there
  uint64_t offset = 0;  // kGoOn: the first byte that is wanted; kFailed: how many are kept
  std::string text;     // kFailed: the reason
};

void Encode(const Request& request, Record record);
void Encode(const Answer& answer, Record record);

// Nothing, when it is none of ours. A name that leaves the folder is none.
std::optional<Request> DecodeRequest(Record record);
std::optional<Answer> DecodeAnswer(Record record);

}  // namespace esdp_copy

#endif  // ESDP_TOOLS_ESDP_COPY_WIRE_H_
