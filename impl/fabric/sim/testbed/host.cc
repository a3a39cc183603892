#include "impl/fabric/sim/testbed/host.h"

#include <utility>

namespace esdp::fabric::sim::testbed {
namespace {

constexpr uint64_t kPageBytes = 4096;

double Pages(uint64_t bytes) {
  const uint64_t pages = (bytes + kPageBytes - 1) / kPageBytes;
  return static_cast<double>(pages);
}

}  // namespace

Host::Host(std::shared_ptr<World> world, const Parameters& parameters)
    : world_(std::move(world)),
      parameters_(parameters),
      machine_(*world_, parameters),
      wire_(*world_, parameters) {}

// --- the processor -------------------------------------------------------------------------------

Work Host::Charge(const std::function<void()>& protocol, size_t polls) {
  charged_ = {};
  polls_ = polls;
  protocol();
  polls_ = 0;
  return {.nanoseconds = static_cast<double>(std::exchange(charged_, Duration{}).count())};
}

Work Host::Copy(uint64_t bytes, double read_missing, double write_missing) const {
  const auto count = static_cast<double>(bytes);
  const double each = 1000 / parameters_.machine_copy_mb_s +
                      read_missing * parameters_.machine_read_miss_ns_byte +
                      write_missing * parameters_.machine_write_miss_ns_byte;
  return {.nanoseconds = count * each, .traffic = count * (read_missing + 2 * write_missing)};
}

void Host::OnRegister(uint64_t bytes) {
  if (!counts_) return;
  const double page = parameters_.kernel_pin_us_page + parameters_.kernel_translate_us_page;
  charged_ += Microseconds(parameters_.kernel_map_us + Pages(bytes) * page);
}

void Host::OnDeregister(uint64_t bytes) {
  if (!counts_) return;
  charged_ +=
      Microseconds(parameters_.kernel_unmap_us + Pages(bytes) * parameters_.kernel_unpin_us_page);
}

void Host::OnPost(Opcode) {
  if (counts_) charged_ += Microseconds(parameters_.device_post_us);
}

void Host::OnPolled(Opcode) {
  if (!counts_) return;
  if (polls_ > 0) --polls_;
  charged_ += Microseconds(parameters_.device_completion_us);
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
    wire_.Send(cargo.flow, cargo.bytes, std::move(moved), std::move(arrive));
    return;
  }
  world_->Schedule(world_->Now() + Microseconds(parameters_.device_read_latency_us),
                   [weak = weak_from_this(), this, cargo, moved = std::move(moved),
                    arrive = std::move(arrive)]() mutable {
                     if (weak.expired()) return;
                     wire_.Send(cargo.flow, cargo.bytes, std::move(moved), std::move(arrive));
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
    const bool many = static_cast<double>(sends) >= parameters_.device_sends_a_interrupt;
    if (more || many) Interrupt([this] { RunTasklet(); });
    return;
  }
  if (!std::exchange(armed_, false)) return;
  Interrupt([this] {
    machine_.Release(tasklet_);
    interrupted_ = false;
    wake_process_();
  });
}

void Host::Interrupt(std::function<void()> then) {
  interrupted_ = true;
  machine_.Acquire(tasklet_, [this, then = std::move(then)]() mutable {
    machine_.Spend(tasklet_, {.nanoseconds = parameters_.device_interrupt_us * 1000},
                   std::move(then));
  });
}

void Host::RunTasklet() {
  more_to_poll_ = false;
  const Work work = Charge(
      [this] {
        if (poll_) poll_();
      },
      1);
  machine_.Spend(tasklet_, work, [this] {
    behind_poll_();
    if (more_to_poll_) return RunTasklet();
    machine_.Release(tasklet_);
    interrupted_ = false;
  });
}

}  // namespace esdp::fabric::sim::testbed
