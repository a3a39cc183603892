#include <esdp_files.pb.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/esdp_files/chunks.h"
#include "tools/esdp_files/frame.h"
#include "tools/esdp_files/names.h"
#include "tools/esdp_serve/request_queue.h"

// Bytes as a client of esdp_serve sends them, and as a server sends its answers. Whatever comes, no
// more is kept than the limits say, names that go up are refused, and the chunks of an answer that is
// sound are exactly its bytes.

namespace {

using esdp_files::FileExtent;
using esdp_files::wire::Answer;
using esdp_files::wire::Request;

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

void LookAt(const Request& request) {
  const std::string& name = request.get().name();
  if (!esdp_files::CheckName(name).ok()) return;
  Require(name.size() <= esdp_files::kNameBytesMax && name.find('\0') == std::string::npos);
  Require(!name.starts_with('/') && name != ".." && name.find("/../") == std::string::npos);
  Require(!name.starts_with("../") && !name.ends_with("/.."));
}

// The first byte says how long the pieces are in which the rest comes.
void AsRequests(std::span<const std::byte> bytes, size_t piece) {
  esdp_serve::RequestQueue queue;
  while (!bytes.empty() && queue.fault().empty()) {
    if (queue.WantsMore()) {
      queue.Add(bytes.first(std::min(piece, bytes.size())));
      bytes = bytes.subspan(std::min(piece, bytes.size()));
    } else {
      Require(!queue.empty());
      LookAt(queue.front());
      queue.front_is_cancelled() ? queue.AwaitResync() : queue.Pop();
    }
  }
  for (size_t i = 0; !queue.empty(); ++i) queue.Pop();
  Require(queue.greeted() || queue.empty());
}

void AsAnswers(std::span<const std::byte> bytes) {
  esdp_files::FrameReader reader;
  reader.Add(bytes);
  while (const auto frame = reader.Next()) {
    Answer answer;
    if (!answer.ParseFromArray(frame->data(), static_cast<int>(frame->size()))) continue;
    std::vector<FileExtent> extents;
    for (const auto& extent : answer.extents()) {
      extents.push_back({extent.offset(), extent.length()});
    }
    const uint64_t end = std::min(answer.size(), esdp_files::kFileBytesMax);
    if (!esdp_files::ExtentsAreSound(extents, answer.offset(), end, answer.length())) continue;
    uint64_t sum = 0;
    constexpr int kChunksMax = 1000;
    esdp_files::Chunks chunks(extents);
    for (int i = 0; i < kChunksMax && !chunks.done(); ++i) {
      const FileExtent chunk = chunks.Peek();
      Require(chunk.length > 0 && chunk.length <= esdp_files::kChunkBytes);
      Require(chunk.offset >= answer.offset() && chunk.offset + chunk.length <= end);
      sum += chunk.length;
      chunks.Skip();
    }
    Require(!chunks.done() || sum == answer.length());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  AsRequests(bytes, size_t{data[0]} + 1);
  AsAnswers(bytes);
  return 0;
}
