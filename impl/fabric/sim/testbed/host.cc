#include "impl/fabric/sim/testbed/host.h"

#include <algorithm>
#include <utility>

namespace esdp::fabric::sim::testbed {
namespace {

constexpr uint64_t kPageBytes = 4096;

double Pages(uint64_t bytes) {
  const uint64_t pages = (bytes + kPageBytes - 1) / kPageBytes;
  return static_cast<double>(pages);
}

}  // namespace

// --- the processor -------------------------------------------------------------------------------

Work Host::Charge(const std::function<void()>& protocol, size_t polls) {
  charged_ = {};
  polls_ = polls;
  protocol();
  polls_ = 0;
  charged_ever_ += charged_;
  return {.nanoseconds = static_cast<double>(std::exchange(charged_, Duration{}).count())};
}

Work Host::Copy(uint64_t bytes, double read_missing, double write_missing) const {
  const auto count = static_cast<double>(bytes);
  const double each = 1000 / parameters().machine_copy_mb_s +
                      read_missing * parameters().machine_read_miss_ns_byte +
                      write_missing * parameters().machine_write_miss_ns_byte;
  return {.nanoseconds = count * each, .traffic = count * (read_missing + 2 * write_missing)};
}

void Host::OnRegister(uint64_t bytes) {
  if (!counts_) return;
  const double page = parameters().kernel_pin_us_page + parameters().kernel_translate_us_page;
  charged_ += Microseconds(parameters().kernel_map_us + Pages(bytes) * page);
}

void Host::OnDeregister(uint64_t bytes) {
  if (!counts_) return;
  charged_ +=
      Microseconds(parameters().kernel_unmap_us + Pages(bytes) * parameters().kernel_unpin_us_page);
}

void Host::OnPost(Opcode) {
  if (counts_) charged_ += Microseconds(parameters().device_post_us);
}

// An end of a Send that asked for no completion is polled, for the fabric has one, and takes nothing.
bool Host::IsSilent(Opcode opcode) {
  if (!behind_poll_ || opcode != Opcode::kSend) return false;
  const auto told = static_cast<uint64_t>(parameters().device_sends_a_interrupt);
  return ++sends_polled_ % std::max<uint64_t>(told, 1) != 0;
}

void Host::OnPolled(Opcode opcode) {
  if (!counts_ || IsSilent(opcode)) return;
  if (polls_ > 0) --polls_;
  charged_ += Microseconds(parameters().device_completion_us);
}

void Host::StopCounting() {
  counts_ = false;
  if (behind_poll_) behind_poll_ = [] {};
  if (wake_process_) wake_process_ = [] {};
}

// --- the device ----------------------------------------------------------------------------------

void Host::Carry(const Cargo& cargo, HostModel* peer, std::function<void()> arrive) {
  auto moved = [from = weak_from_this(), to = peer == nullptr
                                                  ? std::weak_ptr<HostModel>()
                                                  : peer->weak_from_this()](uint64_t bytes) {
    if (const auto host = from.lock()) host->OnDma(bytes);
    if (const auto host = to.lock()) host->OnDma(bytes);
  };
  if (!cargo.answers) {
    hardware_->wire().Send(2 * cargo.flow, cargo.bytes, std::move(moved), std::move(arrive));
    return;
  }
  world().Schedule(world().Now() + Microseconds(parameters().device_read_latency_us),
                   [weak = weak_from_this(), this, cargo, moved = std::move(moved),
                    arrive = std::move(arrive)]() mutable {
                     if (weak.expired()) return;
                     hardware_->wire().Send(2 * cargo.flow + 1, cargo.bytes, std::move(moved),
                                            std::move(arrive));
                   });
}

// --- interrupts ----------------------------------------------------------------------------------

void Host::OnSomethingToPoll(size_t sends, bool more) {
  if (!counts_) {
    if (poll_) poll_();
    return;
  }
  more_to_poll_ = true;
  if (interrupted_) return;
  if (behind_poll_) {
    const bool many = static_cast<double>(sends) >= parameters().device_sends_a_interrupt;
    if (more || many) Interrupt(&Host::ServeKernel);
  } else if (std::exchange(armed_, false)) {
    Interrupt(&Host::ServeProcess);
  }
}

// Other queues of the host may be served when this one is no more.
void Host::Interrupt(void (Host::*serve)()) {
  interrupted_ = true;
  hardware_->Interrupt([weak = weak_from_this(), this, serve, hardware = hardware_.get()] {
    if (weak.expired()) return hardware->Served();
    (this->*serve)();
  });
}

void Host::ServeProcess() {
  hardware_->Served();
  interrupted_ = false;
  wake_process_();
}

void Host::ServeKernel() {
  if (!locked_) return RunTasklet();
  left_ = true;
  hardware_->Served();
}

void Host::Poll() {
  more_to_poll_ = false;
  if (poll_) poll_();
}

void Host::RunTasklet() {
  const Work work = Charge([this] { Poll(); }, 1);
  hardware_->SpendInInterrupt(work, [weak = weak_from_this(), this, hardware = hardware_.get()] {
    if (weak.expired()) return hardware->Served();
    OnTaskletPolled();
  });
}

void Host::OnTaskletPolled() {
  behind_poll_();
  if (more_to_poll_) return RunTasklet();
  interrupted_ = false;
  hardware_->Served();
}

}  // namespace esdp::fabric::sim::testbed
