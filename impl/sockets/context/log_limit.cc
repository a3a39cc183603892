#include "impl/sockets/context/log_limit.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

namespace esdp::sockets {
namespace {

constexpr Duration kBetweenLines = std::chrono::seconds(1);
constexpr size_t kNameMax = 96;

// What is left of a line without its numbers and addresses.
std::string NameOf(std::string_view line) {
  constexpr std::string_view kOfNumbers = "0123456789.:%";
  std::string name;
  bool in_brackets = false;
  for (const char c : line) {
    if (c == '[') in_brackets = true;
    if (!in_brackets && kOfNumbers.find(c) == std::string_view::npos) name += c;
    if (c == ']') in_brackets = false;
    if (name.size() == kNameMax) break;
  }
  return name;
}

}  // namespace

void LogLimit::Start(std::function<Time()> now, std::function<void(Time)> ring) {
  const std::lock_guard lock(mutex_);
  if (burst_ == 0) return;
  now_ = std::move(now);
  ring_ = std::move(ring);
}

void LogLimit::Fill(Kind& kind, Time now) const {
  const auto seconds = (now - kind.filled_at) / kBetweenLines;
  if (seconds <= 0) return;
  kind.room += static_cast<uint32_t>(std::min<int64_t>(seconds, burst_ - kind.room));
  kind.filled_at += seconds * kBetweenLines;
}

LogLimit::Kind& LogLimit::KindOf(std::string_view line, Time now) {
  std::string name = NameOf(line);
  if (!kinds_.contains(name) && kinds_.size() >= kKindsMax) {
    for (auto& [other, kind] : kinds_) Fill(kind, now);
    std::erase_if(kinds_, [this](const auto& entry) {
      return entry.second.room == burst_ && entry.second.left_out == 0;
    });
    if (kinds_.size() >= kKindsMax) name.clear();
  }
  const auto [entry, is_new] = kinds_.try_emplace(std::move(name));
  if (is_new) {
    entry->second.room = burst_;
    entry->second.filled_at = now;
  }
  return entry->second;
}

bool LogLimit::MayGo(std::string_view line, Time now) {
  Kind& kind = KindOf(line, now);
  Fill(kind, now);
  if (kind.room > 0 && kind.left_out == 0) {
    --kind.room;
    return true;
  }
  kind.last = line;
  ++kind.left_out;
  return false;
}

void LogLimit::Log(std::string_view line) {
  if (sink_ == nullptr) return;
  std::function<void(Time)> ring;
  Time at{};
  try {
    const std::lock_guard lock(mutex_);
    at = now_ ? now_() : Time{};
    if (now_ && !MayGo(line, at)) {
      if (is_awaited_ || !ring_) return;
      ring = ring_;
      is_awaited_ = true;
    }
  } catch (const std::bad_alloc&) {
  }
  if (ring) return ring(AddSaturating(at, kBetweenLines));
  sink_(line);
}

void LogLimit::TellLeftOut() {
  std::vector<std::string> lines;
  try {
    const std::lock_guard lock(mutex_);
    is_awaited_ = false;
    for (auto& [name, kind] : kinds_) {
      if (kind.left_out == 0) continue;
      lines.push_back(kind.last);
      if (kind.left_out > 1) {
        lines.back() += " (" + std::to_string(kind.left_out - 1) + " more like it were left out)";
      }
      kind.left_out = 0;
      if (now_) Fill(kind, now_());
      kind.room -= std::min(kind.room, 1u);
    }
  } catch (const std::bad_alloc&) {  // the rest with the next one
  }
  for (const std::string& line : lines) sink_(line);
}

void LogLimit::Freeze() {
  const std::lock_guard lock(mutex_);
  ring_ = nullptr;
  if (now_) now_ = [now = now_()] { return now; };
}

void LogLimit::Stop() {
  TellLeftOut();
  const std::lock_guard lock(mutex_);
  now_ = nullptr;
}

}  // namespace esdp::sockets
