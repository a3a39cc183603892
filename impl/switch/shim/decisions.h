#ifndef ESDP_IMPL_SWITCH_SHIM_DECISIONS_H_
#define ESDP_IMPL_SWITCH_SHIM_DECISIONS_H_

#include <cstdint>

#include "impl/switch/shim/table.h"

// When a connection is found out to be SDP, or not. Each answers 0 where the call goes on with what
// is under the number now, else the errno of the call.

namespace esdp::switching {

// An accepted connection is to be read from: its first bytes tell. Waits for them as the socket
// does, where `dont_wait` does not say otherwise.
int DecideBeforeRead(int number, bool dont_wait);
// It is written to first.
int DecideBeforeWrite(int number);
// Its last number is closed before anything was read or written: a peer that speaks SDP is to find
// the end of a connection, not one that breaks off while it asks. What another process has too is left
// to that.
void DecideBeforeClose(int number);
// A rule or an earlier answer says that this peer speaks SDP; `endpoint` is the same address.
bool IsKnownToSpeak(const Name& peer, const Endpoint& endpoint);
// A connection by a rule: adopts it once TCP has connected.
int DecideConnected(int number);
// Bytes may move that nobody of us sees: what is not decided is relayed until it is.
int DecideUnseen(int number);
// Signals of the number go to somebody, whose handler may read an urgent byte while it interrupts a
// read: what goes directly is relayed.
void RelayForSignals(int number);
// Nobody may look at an accepted connection for longer than its peer waits for an answer: where a
// request is there after a while the engine answers it. Under the lock, of one just accepted. Where
// that has no thread yet it gets none for it: a process that accepts for its children is to fork
// without one.
void AnswerSoon(Connection& connection);
void NoteFork(bool in_child);
// What was put off is due.
void OnDue(uint64_t what);

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_SHIM_DECISIONS_H_
