#ifndef ESDP_IMPL_FABRIC_SIM_TESTBED_HOST_H_
#define ESDP_IMPL_FABRIC_SIM_TESTBED_HOST_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "impl/base/time.h"
#include "impl/fabric/sim/host_model.h"
#include "impl/fabric/sim/testbed/hardware.h"
#include "impl/fabric/sim/testbed/machine.h"
#include "impl/fabric/sim/testbed/parameters.h"
#include "impl/fabric/sim/world.h"

namespace esdp::fabric::sim::testbed {

// One host of a test-bed, or one of the completion queues on it: a socket of a kernel has its own.
// The protocol runs in no virtual time at an instant, and is charged for what it does there: whoever
// ran it then has the processor for that long. What it posts leaves when it would have come so far.
//
//   Owns:     the hardware, which it may share.
//   Threads:  the world's lock.
//   Blocks:   never.
//   Units:    bytes, virtual time.
//   Errors:   –
class Host : public HostModel {
 public:
  explicit Host(std::shared_ptr<Hardware> hardware) : hardware_(std::move(hardware)) {}
  Host(std::shared_ptr<World> world, const Parameters& parameters)
      : Host(std::make_shared<Hardware>(std::move(world), parameters)) {}

  const std::shared_ptr<Hardware>& hardware() { return hardware_; }
  Machine& machine() { return hardware_->machine(); }
  const Parameters& parameters() const { return hardware_->parameters(); }
  World& world() { return *hardware_->world(); }
  const std::shared_ptr<World>& shared_world() const { return hardware_->world(); }

  // Only in between do calls take the processors' time: connections are made before, and ended
  // behind it.
  void StartCounting() { counts_ = true; }
  void StopCounting();

  // The protocol lives in the kernel: a tasklet polls, one completion after the other, and `behind`
  // runs behind each, where it wakes threads. Of so many Sends one asks for a completion.
  void ServeInKernel(std::function<void()> behind) { behind_poll_ = std::move(behind); }
  // While a call has the lock of the socket, the tasklet leaves what there is to the call, which then
  // polls until nothing is left before it unlocks. What comes meanwhile interrupts nobody.
  void Lock() { locked_ = true; }
  bool TakeLeft() { return std::exchange(left_, false); }
  void Poll();
  void OnPolledAll() { interrupted_ = false; }
  void Unlock() { locked_ = false; }
  // It lives in a process, which polls as often as it likes, and is woken by an interrupt after it
  // has asked for that: `wake` runs once for each Arm, of any completion.
  void ServeInProcess(std::function<void()> wake) { wake_process_ = std::move(wake); }
  // Whether there has been something since it last asked for it.
  bool TakeMoreToPoll() { return std::exchange(more_to_poll_, false); }
  void Arm() { armed_ = true; }

  // Runs the protocol now, and tells what that takes. It may poll so many completions.
  Work Charge(const std::function<void()>& protocol, size_t polls = 0);
  // All of what Charge has told.
  Duration charged_ever() const { return charged_ever_; }
  // What the thread that runs in Charge does beside the protocol.
  void Add(Duration time) { charged_ += time; }
  // Copying, where a part of what is read and written is in no cache.
  Work Copy(uint64_t bytes, double read_missing, double write_missing) const;

  void OnRegister(uint64_t bytes) override;
  void OnDeregister(uint64_t bytes) override;
  void OnPost(Opcode opcode) override;
  void OnPolled(Opcode opcode) override;
  Time DeviceTime() const override { return hardware_->world()->Now() + charged_; }
  void Carry(const Cargo& cargo, HostModel* peer, std::function<void()> arrive) override;
  void OnDma(uint64_t bytes) override { machine().OnDma(bytes); }
  void OnSomethingToPoll(size_t sends, bool more) override;
  size_t PollLimit() override { return counts_ ? polls_ : ~size_t{0}; }
  void SetPoll(std::function<void()> poll) override { poll_ = std::move(poll); }

 private:
  bool IsSilent(Opcode opcode);
  void Interrupt(void (Host::*serve)());
  // What an interrupt is for.
  void ServeKernel();
  void ServeProcess();
  void RunTasklet();
  void OnTaskletPolled();

  const std::shared_ptr<Hardware> hardware_;
  bool counts_ = false;
  Duration charged_{};  // in the Charge that runs
  Duration charged_ever_{};
  size_t polls_ = 0;  // left to it
  std::function<void()> poll_;
  std::function<void()> behind_poll_;
  std::function<void()> wake_process_;
  bool interrupted_ = false;  // and what that was for is not polled yet
  bool more_to_poll_ = false;
  bool locked_ = false;
  bool left_ = false;  // by the tasklet to who has the lock
  uint64_t sends_polled_ = 0;
  bool armed_ = false;
};

}  // namespace esdp::fabric::sim::testbed

#endif  // ESDP_IMPL_FABRIC_SIM_TESTBED_HOST_H_
