#include "impl/fabric/sim/work_queues.h"

#include <algorithm>

namespace esdp::fabric::sim {
namespace {

void Hold(soft::RegionTable& regions, const std::vector<ScatterEntry>& entries) {
  for (const ScatterEntry& entry : entries) regions.Hold(entry.region);
}

void Release(soft::RegionTable& regions, const std::vector<ScatterEntry>& entries) {
  for (const ScatterEntry& entry : entries) regions.Release(entry.region);
}

}  // namespace

uint64_t LengthOf(const ScatterEntry* entries, uint32_t count) {
  uint64_t length = 0;
  for (uint32_t i = 0; i < count; ++i) length += entries[i].length;
  return length;
}

std::vector<std::byte> Gather(const std::vector<ScatterEntry>& entries) {
  std::vector<std::byte> payload;
  payload.reserve(LengthOf(entries.data(), static_cast<uint32_t>(entries.size())));
  for (const ScatterEntry& entry : entries) {
    payload.insert(payload.end(), entry.address, entry.address + entry.length);
  }
  return payload;
}

void Scatter(const std::vector<ScatterEntry>& entries, ConstBytes payload) {
  for (const ScatterEntry& entry : entries) {
    const size_t length = std::min<size_t>(entry.length, payload.size());
    CopyBytes(Bytes(entry.address, length), payload.first(length));
    payload = payload.subspan(length);
  }
}

void SendQueue::Push(const SendWork& work) {
  ++taken_;
  SendElement& element = elements_.emplace_back();
  element.number = ++last_number_;
  element.work_id = work.work_id;
  element.opcode = work.opcode;
  element.entries.assign(work.entries, work.entries + work.entry_count);
  element.remote = work.remote;
  element.key = work.invalidate_key;
  element.has_key = work.has_invalidate;
  Hold(regions_, element.entries);
}

const SendElement* SendQueue::Next() const { return Find(next_); }

const SendElement* SendQueue::Find(uint64_t number) const {
  if (elements_.empty() || number < elements_.front().number) return nullptr;
  const uint64_t index = number - elements_.front().number;
  return index < elements_.size() ? &elements_[index] : nullptr;
}

void SendQueue::Finish(uint64_t number, WorkStatus status) {
  if (Find(number) == nullptr) return;
  SendElement& element = elements_[number - elements_.front().number];
  element.done = true;
  element.status = status;
  CompleteFinished();
}

void SendQueue::Acknowledge(uint64_t number) {
  for (SendElement& element : elements_) {
    if (element.number > number || element.number >= next_) break;
    if (element.opcode == Opcode::kSend || element.opcode == Opcode::kWrite) element.done = true;
  }
  CompleteFinished();
}

void SendQueue::Flush() {
  for (SendElement& element : elements_) {
    if (!element.done) element.status = WorkStatus::kFlushed;
    element.done = true;
  }
  CompleteFinished();
}

void SendQueue::CompleteFinished() {
  while (!elements_.empty() && elements_.front().done) {
    const SendElement& element = elements_.front();
    Release(regions_, element.entries);
    outbox_.Complete({.queue_pair = queue_pair_,
                      .work_id = element.work_id,
                      .opcode = element.opcode,
                      .status = element.status});
    elements_.pop_front();
  }
}

void ReceiveQueue::Push(const ReceiveWork& work) {
  ++taken_;
  Element& element = elements_.emplace_back();
  element.work_id = work.work_id;
  element.entries.assign(work.entries, work.entries + work.entry_count);
  Hold(regions_, element.entries);
}

uint64_t ReceiveQueue::FrontLength() const {
  const std::vector<ScatterEntry>& entries = elements_.front().entries;
  return LengthOf(entries.data(), static_cast<uint32_t>(entries.size()));
}

void ReceiveQueue::Fill(ConstBytes payload, const uint32_t* invalidated_key, uint64_t written,
                        const std::byte* lent) {
  const size_t placed = lent == nullptr ? payload.size() : std::min(payload.size(), kLentHeadBytes);
  Scatter(elements_.front().entries, payload.first(placed));
  CompleteFront({.status = WorkStatus::kSuccess,
                 .byte_length = static_cast<uint32_t>(payload.size()),
                 .invalidated_key = invalidated_key == nullptr ? 0 : *invalidated_key,
                 .has_invalidated = invalidated_key != nullptr,
                 .written = written,
                 .lent = lent});
}

void ReceiveQueue::Flush() {
  while (!elements_.empty()) CompleteFront({.status = WorkStatus::kFlushed});
}

void ReceiveQueue::CompleteFront(Completion completion) {
  completion.queue_pair = queue_pair_;
  completion.work_id = elements_.front().work_id;
  completion.opcode = Opcode::kReceive;
  Release(regions_, elements_.front().entries);
  elements_.pop_front();
  outbox_.Complete(completion);
}

}  // namespace esdp::fabric::sim
