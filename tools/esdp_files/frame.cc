#include "tools/esdp_files/frame.h"

#include <google/protobuf/message_lite.h>

#include "tools/esdp_files/big_endian.h"

namespace esdp_files {

void FrameReader::Add(std::span<const std::byte> bytes) {
  bytes_.erase(0, at_);
  at_ = 0;
  bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::optional<std::string_view> FrameReader::Next() {
  if (bad_ || left() < kFrameLengthBytes) return std::nullopt;
  const std::string_view rest = std::string_view(bytes_).substr(at_);
  const auto length = static_cast<size_t>(LoadBigEndian(std::as_bytes(std::span(rest)).first<4>()));
  if (length == 0 || length > kFrameBytesMax) {
    bad_ = true;
    return std::nullopt;
  }
  if (rest.size() - kFrameLengthBytes < length) return std::nullopt;
  at_ += kFrameLengthBytes + length;
  return rest.substr(kFrameLengthBytes, length);
}

std::string_view FrameReader::TakeRaw(size_t length) {
  const std::string_view taken = std::string_view(bytes_).substr(at_, length);
  at_ += taken.size();
  return taken;
}

bool WriteFrame(const google::protobuf::MessageLite& message, std::span<std::byte> out,
                size_t* length) {
  const size_t content = message.ByteSizeLong();
  // A message of nothing has no frame: every one of ours has an id or a status.
  if (content == 0 || content > kFrameBytesMax || out.size() < kFrameLengthBytes + content) {
    return false;
  }
  StoreBigEndian(content, out.first<kFrameLengthBytes>());
  *length = kFrameLengthBytes + content;
  return message.SerializeToArray(out.data() + kFrameLengthBytes, static_cast<int>(content));
}

std::string ToFrame(const google::protobuf::MessageLite& message) {
  std::string frame(kFrameLengthBytes + message.ByteSizeLong(), '\0');
  size_t length = 0;
  const bool fits = WriteFrame(message, std::as_writable_bytes(std::span(frame)), &length);
  return fits ? frame : std::string();
}

}  // namespace esdp_files
