#include "impl/switch/engine/sdp_pump.h"

#include <utility>

#include "esdp/context.h"

namespace esdp::switching {

SdpPump::SdpPump(Engine& engine, uint64_t id, Socket socket, const ProgramEnd& program)
    : engine_(engine), id_(id), socket_(std::move(socket)), program_(program) {}

bool SdpPump::Open(size_t buffer_bytes) {
  buffer_bytes_ = buffer_bytes;
  absl::StatusOr<Region> region = engine_.context().Allocate(2 * kSlots * buffer_bytes);
  if (!region.ok()) return false;
  region_ = *std::move(region);
  for (unsigned slot = 0; slot < kSlots; ++slot) PostReceive(slot);
  ReadProgram();
  return true;
}

std::byte* SdpPump::At(unsigned slot) const { return region_.info().base + slot * buffer_bytes_; }

Slice SdpPump::OutSlice(unsigned slot, size_t bytes) const {
  return region_.slice((kSlots + slot) * buffer_bytes_, bytes).value_or(Slice());
}

void SdpPump::OnProgram() {
  WriteProgram();
  ReadProgram();
}

void SdpPump::ReadProgram() {
  while (!program_ended_ && !out_failed_ && !closing_ && !sending_[next_to_send_]) {
    const unsigned slot = next_to_send_;
    size_t got = 0;
    bool urgent = false;
    const ProgramEnd::Result result = program_.Read(At(kSlots + slot), buffer_bytes_, got, urgent);
    if (result == ProgramEnd::Result::kAgain) return;
    if (result == ProgramEnd::Result::kReset) {
      reset_by_program_ = true;  // an end in order would hide it
      return;
    }
    if (result == ProgramEnd::Result::kEnded) {
      program_ended_ = true;
      break;
    }
    const auto posted =
        socket_.Send(OutSlice(slot, got), urgent ? SendFlags::kUrgent : SendFlags::kNone,
                     {.queue = engine_.queue(), .cookie = CookieOf(id_, Posted::kSend, slot)});
    if (!posted.ok()) {
      out_failed_ = true;
      return;
    }
    sending_[slot] = true;
    ++sends_out_;
    next_to_send_ = (slot + 1) % kSlots;
  }
  if (program_ended_ && sends_out_ == 0) PostShutdown();
}

void SdpPump::EndOutput() {
  ReadProgram();
  if (sends_out_ > 0 || out_failed_ || closing_) return;
  program_ended_ = true;
  PostShutdown();
}

void SdpPump::PostShutdown() {
  if (out_failed_ || closing_ || std::exchange(shutdown_posted_, true)) return;
  const auto posted =
      socket_.Shutdown({.queue = engine_.queue(), .cookie = CookieOf(id_, Posted::kShutdown)});
  if (!posted.ok()) out_failed_ = true;
}

void SdpPump::PostReceive(unsigned slot) {
  if (in_failed_ || closing_ || end_of_stream_) return;
  const Slice slice = region_.slice(slot * buffer_bytes_, buffer_bytes_).value_or(Slice());
  const auto posted =
      socket_.Recv(slice, RecvFlags::kNone,
                   {.queue = engine_.queue(), .cookie = CookieOf(id_, Posted::kReceive, slot)});
  if (!posted.ok()) in_failed_ = true;
}

void SdpPump::WriteProgram() {
  while (incoming_[next_to_write_].is_full) {
    Incoming& slot = incoming_[next_to_write_];
    if (slot.written < slot.filled) {
      size_t done = 0;
      const std::byte* const from = At(next_to_write_) + slot.written;
      const auto result = program_.Write(from, slot.filled - slot.written, done, slot.urgent);
      if (result == ProgramEnd::Result::kAgain) return;
      if (result == ProgramEnd::Result::kEnded) {
        reset_by_program_ = reset_by_program_ || program_.IsClosed();
        done = slot.filled - slot.written;  // nobody reads it
      }
      slot.written += done;
      if (slot.written < slot.filled) continue;
    }
    slot = {};
    const unsigned free = next_to_write_;
    next_to_write_ = (free + 1) % kSlots;
    PostReceive(free);
  }
  if (end_of_stream_ && !std::exchange(input_ended_, true)) program_.EndOfInput();
}

void SdpPump::OnReceived(const Event& event) {
  if (closing_) return;
  if (!event.ok()) {
    if (!std::exchange(in_failed_, true)) failure_ = event;
    return;
  }
  received_ += event.bytes;
  if (event.bytes > 0) {
    const bool urgent = (event.flags & kUrgent) != 0;
    incoming_[SlotOf(event)] = {.filled = event.bytes, .is_full = true, .urgent = urgent};
  }
  end_of_stream_ = end_of_stream_ || event.eof();
  WriteProgram();
}

void SdpPump::OnEvent(const Event& event) {
  switch (PostedOf(event)) {
    case Posted::kReceive:
      return OnReceived(event);
    case Posted::kSend:
      sending_[SlotOf(event)] = false;
      --sends_out_;
      if (event.ok()) sent_ += event.bytes;
      if (!event.ok() && !closing_ && !std::exchange(out_failed_, true)) failure_ = event;
      return ReadProgram();
    case Posted::kShutdown:
      if (event.ok()) shutdown_done_ = true;
      if (!event.ok() && !closing_ && !std::exchange(out_failed_, true)) failure_ = event;
      return;
    case Posted::kClose:
      closed_ = true;
      return;
    case Posted::kSetUp:
    case Posted::kPoll:
    case Posted::kMove:
      return;
  }
}

void SdpPump::Close(CloseMode mode) {
  if (std::exchange(closing_, true) && mode == CloseMode::kGraceful) return;
  const auto posted =
      socket_.Close(mode, {.queue = engine_.queue(), .cookie = CookieOf(id_, Posted::kClose)});
  if (!posted.ok()) closed_ = true;
}

}  // namespace esdp::switching
