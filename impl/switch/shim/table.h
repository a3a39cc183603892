#ifndef ESDP_IMPL_SWITCH_SHIM_TABLE_H_
#define ESDP_IMPL_SWITCH_SHIM_TABLE_H_

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "impl/switch/engine_interface.h"
#include "impl/switch/rules/rule.h"
#include "impl/switch/shim/options_set.h"
#include "impl/switch/shim/registrations.h"
#include "impl/switch/shim/undecided_waits.h"
#include "impl/switch/shim/uninterrupted.h"

namespace esdp::switching {

enum class State : uint8_t {
  kCandidate,   // a socket that may be connected by a rule
  kConnecting,  // connect was called, and a rule matches
  kAccepted,    // nothing was read or written yet
  kSpoke,       // accepted, and written to first; a request of SDP may still be the first input
  kListening,   // accepts by rule
  kRelayed,     // the number is one end of a stream pair
  kSettingUp,   // the same, until calls may go directly
  kDirect,      // calls go to the engine, and the pair shows when they can move something
};

// From then on a stream pair is under the number.
constexpr bool IsSwitched(State state) { return state >= State::kRelayed; }

// What is known of a socket of the program; all its numbers share it.
struct Connection {
  explicit Connection(uint32_t use) : waits(use) {}

  std::atomic<State> state{State::kCandidate};
  // Its number was shown as readable for the request, which was nothing for the program.
  std::atomic<bool> awaits_first{false};
  std::atomic<bool> non_blocking{false};       // kSettingUp, kDirect: O_NONBLOCK
  std::atomic<bool> polled{false};             // somebody waits, or has waited, for its readiness
  std::atomic<bool> by_edges{false};           // by edges; for good
  std::atomic<bool> output_shut{false};        // kDirect
  std::atomic<bool> connect_under_way{false};  // the last connect did not wait for its end
  std::atomic<bool> owes_reset{false};         // kRelayed: the pair could not tell of it
  bool input_shut = false;                     // kDirect
  bool foreign = false;                        // a parent relays it
  bool shared = false;                         // another process may have it too
  bool name_was_held = false;                  // of the peer's port, before connect
  bool is_heard = false;                       // a process of this host listens there for SDP
  linger lingers = {};                         // switched: SO_LINGER
  bool refused = false;                        // by a rule that takes nothing but SDP
  uint16_t numbers = 0;
  int number = -1;  // one of them
  const Rule* rule = nullptr;
  int below = -1;  // switched: the TCP socket, for options. kListening: the name of the port
  uint16_t port = 0;
  ino_t inode = 0;  // switched: of the program's end
  uint64_t relay = 0;
  int64_t accepted_at = 0;  // milliseconds
  int64_t part_until = 0;   // for the rest of a request of which a part is there; milliseconds
  UndecidedWaits waits;
  ConnectionNames names;
  OptionsSet options_set;
  std::array<int, kKeptOptions.size()> kept_options = kKeptOptionsAtFirst;
  Registrations registrations;
  uint32_t next = 0;

  bool resets_at_close() const { return lingers.l_onoff != 0 && lingers.l_linger == 0; }
};

// Table knows the sockets of the program that are, or may become, the switch's.
//
//   Owns:     the memory of the table; not descriptors.
//   Threads:  any. Find needs no lock; what changes the table is called under a TableLock.
//   Blocks:   never.
//   Units:    -
//   Errors:   null where there is no room.
class Table {
 public:
  static constexpr unsigned kNumbers = 1u << 20, kConnections = 1u << 16;

  // Before anything else. False: no memory.
  bool Open();
  Connection* Find(int number) const;
  Connection* FindRelay(uint64_t id) const;
  // Where it lies: it stays there, and once it is gone another one is there.
  uint32_t PlaceOf(const Connection& connection) const {
    return static_cast<uint32_t>(&connection - connections_);
  }
  Connection& At(uint32_t place) { return connections_[place]; }
  Connection* Insert(int number, State state);
  // Another number of the same socket.
  void AddNumber(int number, Connection& connection);
  // The number is none of ours any more; `last` is told when the connection was its last one.
  void Remove(int number, void (*last)(Connection&));
  template <typename Do>
  void ForEach(const Do& act) {
    for (uint32_t place = 1; place < used_; ++place) {
      if (connections_[place].numbers > 0) act(connections_[place]);
    }
  }
  template <typename Do>
  void ForEachNumber(const Connection& connection, const Do& act) const {
    if (connection.numbers == 1) return act(connection.number);
    for (int number = 0; number <= highest_; ++number) {
      if (Find(number) == &connection) act(number);
    }
  }
  int highest() const { return highest_; }

 private:
  void Set(int number, uint32_t place);

  std::atomic<uint32_t>* places_ = nullptr;
  Connection* connections_ = nullptr;
  uint32_t used_ = 1, free_ = 0;
  int highest_ = -1;
};

extern constinit Table table;

// Needs no lock. `otherwise`: of a number that is none of ours.
inline State StateOf(int number, State otherwise = State::kCandidate) {
  const Connection* const connection = table.Find(number);
  return connection == nullptr ? otherwise : connection->state.load(std::memory_order_acquire);
}

// While one lives the table is its thread's, which gets no signal and is not cancelled.
class TableLock {
 public:
  TableLock();
  ~TableLock();
  TableLock(const TableLock&) = delete;
  TableLock& operator=(const TableLock&) = delete;

  // Around fork, by one thread; it gets no signal in between.
  static void Hold();
  static void LetGo();

 private:
  const Uninterrupted uninterrupted_;
};

// At its end errno is what it was: a call that succeeds leaves it alone.
class KeptErrno {
 public:
  KeptErrno() : errno_(errno) {}
  ~KeptErrno() { errno = errno_; }
  KeptErrno(const KeptErrno&) = delete;
  KeptErrno& operator=(const KeptErrno&) = delete;

 private:
  const int errno_;
};

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_SHIM_TABLE_H_
