#ifndef ESDP_TOOLS_ESDP_FILES_FRAME_H_
#define ESDP_TOOLS_ESDP_FILES_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace google::protobuf {
class MessageLite;
}

// Frames: a length (u32, big endian, 1 .. kFrameBytesMax) and so many bytes, one message.

namespace esdp_files {

inline constexpr size_t kFrameLengthBytes = 4;
inline constexpr size_t kFrameBytesMax = 65536;

// A FrameReader cuts a stream into frames, however it comes.
//
//   Owns:     the bytes that were added and not taken: less than a frame, and one addition.
//   Threads:  one.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   bad() once a length says nothing or too much. What follows has no meaning then.
class FrameReader {
 public:
  void Add(std::span<const std::byte> bytes);
  // The content of the next frame that has come whole, until the next call; nothing where none has.
  std::optional<std::string_view> Next();
  bool bad() const { return bad_; }

  // What came behind the last frame that was taken.
  size_t left() const { return bytes_.size() - at_; }
  // So many bytes of that which are no frame, at most left(), until the next call.
  std::string_view TakeRaw(size_t length);

 private:
  std::string bytes_;
  size_t at_ = 0;  // of the first that was not taken
  bool bad_ = false;
};

// The message as a frame; false where it is too long for one, or for `out`. `*length` counts all
// of it.
bool WriteFrame(const google::protobuf::MessageLite& message, std::span<std::byte> out,
                size_t* length);
// The same as a string; empty where it is too long.
std::string ToFrame(const google::protobuf::MessageLite& message);

}  // namespace esdp_files

#endif  // ESDP_TOOLS_ESDP_FILES_FRAME_H_
