#ifndef ESDP_IMPL_SWITCH_SHIM_ADOPTION_H_
#define ESDP_IMPL_SWITCH_SHIM_ADOPTION_H_

#include "impl/switch/engine_interface.h"
#include "impl/switch/shim/table.h"

// How numbers change hands. All of it under a TableLock.

namespace esdp::switching {

// The number, and each copy of it, becomes one end of a stream pair, whose other end the engine
// relays; what watches it by epoll watches that. 0 or an errno, and then nothing has changed.
int Relay(Connection& connection, Begin begin);
// Why there is no engine for a connection.
Reason ReasonOf(int error);

// It went directly, or was about to, and is relayed from now on: what the program writes goes through
// the pair. An errno where there are no descriptors for that.
int RelayInstead(Connection& connection);
// All of them, before a fork: a child has the number, and not our memory.
void RelayAllInstead();
// Another process is about to have what there is, by a fork or a program that it executes.
void NoteShared();

// The number is the kernel's from now on.
void MakePlain(Connection& connection, Reason reason);

// The number is closed, or is another file's.
void Forget(int number);

void FillNames(int number, ConnectionNames& names);
void FillLocalName(int number, ConnectionNames& names);

ino_t InodeOf(int number);

// The connection that goes by this number; null, and forgotten, where the number is of another file.
Connection* FindRelayed(int number);

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_SHIM_ADOPTION_H_
