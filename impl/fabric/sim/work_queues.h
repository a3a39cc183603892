#ifndef ESDP_IMPL_FABRIC_SIM_WORK_QUEUES_H_
#define ESDP_IMPL_FABRIC_SIM_WORK_QUEUES_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "impl/base/bytes.h"
#include "impl/fabric/sim/outbox.h"
#include "impl/fabric/soft/region_table.h"
#include "impl/fabric/types.h"

// The two work queues of a queue pair: what is posted, how far it is, and completions in posting
// order. Regions are held from Push until the completion is told. A slot is taken from Push until
// the completion was polled.

namespace esdp::fabric::sim {

// Copies between a payload and the entries of a work request, which hold at least as many bytes.
std::vector<std::byte> Gather(const std::vector<ScatterEntry>& entries);
void Scatter(const std::vector<ScatterEntry>& entries, ConstBytes payload);
uint64_t LengthOf(const ScatterEntry* entries, uint32_t count);

struct SendElement {
  uint64_t number = 0;  // 1, 2, ... in posting order
  uint64_t work_id = 0;
  Opcode opcode = Opcode::kSend;
  std::vector<ScatterEntry> entries;
  RemoteRange remote;
  uint32_t key = 0;
  bool has_key = false;
  bool done = false;
  WorkStatus status = WorkStatus::kSuccess;
};

class SendQueue {
 public:
  SendQueue(soft::RegionTable& regions, Outbox& outbox, QueuePairId queue_pair, uint32_t slots)
      : regions_(regions), outbox_(outbox), queue_pair_(queue_pair), slots_(slots) {}

  uint32_t free_slots() const { return slots_ - taken_; }
  void OnPolled() { --taken_; }

  void Push(const SendWork& work);
  // The next element to transmit; null when there is none.
  const SendElement* Next() const;
  void OnTransmitted() { ++next_; }
  // The element of this number, if it has not completed yet.
  const SendElement* Find(uint64_t number) const;
  // The element is finished; it and what waited for it behind completes.
  void Finish(uint64_t number, WorkStatus status);
  // The same for all transmitted sends and writes up to this number.
  void Acknowledge(uint64_t number);
  // Completes everything: what was not finished is flushed.
  void Flush();

 private:
  void CompleteFinished();

  soft::RegionTable& regions_;
  Outbox& outbox_;
  QueuePairId queue_pair_;
  uint32_t slots_;
  uint32_t taken_ = 0;
  uint64_t last_number_ = 0;
  uint64_t next_ = 1;  // number of the element to transmit next
  std::deque<SendElement> elements_;
};

class ReceiveQueue {
 public:
  ReceiveQueue(soft::RegionTable& regions, Outbox& outbox, QueuePairId queue_pair, uint32_t slots)
      : regions_(regions), outbox_(outbox), queue_pair_(queue_pair), slots_(slots) {}

  uint32_t free_slots() const { return slots_ - taken_; }
  void OnPolled() { --taken_; }

  void Push(const ReceiveWork& work);
  bool empty() const { return elements_.empty(); }
  uint64_t FrontLength() const;  // not empty
  // Places a message into the first receive, which is long enough, and completes it; the key, if
  // not null, is the one the message has invalidated, with what was written under it. Where it is
  // `lent`, its head alone is placed.
  void Fill(ConstBytes payload, const uint32_t* invalidated_key, uint64_t written,
            const std::byte* lent);
  void Flush();

 private:
  struct Element {
    uint64_t work_id = 0;
    std::vector<ScatterEntry> entries;
  };

  void CompleteFront(Completion completion);

  soft::RegionTable& regions_;
  Outbox& outbox_;
  QueuePairId queue_pair_;
  uint32_t slots_;
  uint32_t taken_ = 0;
  std::deque<Element> elements_;
};

}  // namespace esdp::fabric::sim

#endif  // ESDP_IMPL_FABRIC_SIM_WORK_QUEUES_H_
