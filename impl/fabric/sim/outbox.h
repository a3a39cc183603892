#ifndef ESDP_IMPL_FABRIC_SIM_OUTBOX_H_
#define ESDP_IMPL_FABRIC_SIM_OUTBOX_H_

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "impl/fabric/ready_descriptor.h"
#include "impl/fabric/types.h"

namespace esdp::fabric::sim {

// What a fabric has to tell and has not yet been asked for: completions and rendezvous events, in
// the order the contract wants (C9, D3), and the descriptor that is readable while there is
// something.
//
//   Owns:     the descriptor.
//   Threads:  one; the descriptor may be waited on by any.
//   Blocks:   never.
//   Units:    –
//   Errors:   ok() is false when no descriptor could be had.
class Outbox {
 public:
  Outbox() : ok_(ready_.Open()) {}

  bool ok() const { return ok_; }
  int fd() const { return ready_.fd(); }

  void Complete(const Completion& completion);
  // kConnectRequest and kConnectFailed are told at once. Behind kEstablished, the queue pair's
  // receive completions wait until it was taken; kDisconnected waits until the queue pair's
  // completions were.
  void Tell(const RendezvousEvent& event);
  // Takes back what was told of a request, a listener's requests, or a queue pair; completions
  // stay.
  void ForgetRequest(RequestId request);
  void ForgetListener(ListenerId listener);
  void ForgetQueuePair(QueuePairId queue_pair);

  bool HasSomething() const { return !completions_.empty() || !events_.empty(); }
  // Completions of Sends that succeeded, which nobody waits for.
  size_t sends() const { return sends_; }
  bool HasMoreThanSends() const { return completions_.size() > sends_ || !events_.empty(); }
  size_t TakeCompletions(absl::Span<Completion> completions);
  bool TakeEvent(RendezvousEvent& event);

 private:
  struct Account {
    size_t untaken = 0;                   // completions told and not taken, the held ones included
    bool establishing = false;            // its kEstablished was told and not taken
    bool forgotten = false;               // goes with its last completion
    std::vector<Completion> held;         // receives that wait for kEstablished to be taken
    std::optional<RendezvousEvent> last;  // its kDisconnected, waiting for the completions
  };

  static bool IsSend(const Completion& completion) {
    return completion.opcode == Opcode::kSend && completion.status == WorkStatus::kSuccess;
  }
  void LetGo(QueuePairId queue_pair);
  // When the last completion was taken.
  void MaybeCloseAccount(QueuePairId queue_pair);
  template <typename Predicate>
  void EraseEvents(Predicate predicate);
  // Makes the descriptor say whether there is something.
  void ShowReadable() { ready_.Set(HasSomething()); }

  ReadyDescriptor ready_;
  bool ok_;
  std::deque<Completion> completions_;
  size_t sends_ = 0;  // of them
  std::deque<RendezvousEvent> events_;
  std::map<QueuePairId, Account> accounts_;
};

}  // namespace esdp::fabric::sim

#endif  // ESDP_IMPL_FABRIC_SIM_OUTBOX_H_
