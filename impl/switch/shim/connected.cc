#include <sys/socket.h>

#include "impl/switch/libc_calls.h"
#include "impl/switch/shim/adoption.h"
#include "impl/switch/shim/decisions.h"
#include "impl/switch/shim/engine_link.h"
#include "impl/switch/shim/port_name.h"
#include "impl/switch/shim/program_rules.h"
#include "impl/switch/shim/table.h"

// What becomes of a connection that the program has made.

namespace esdp::switching {
namespace {

using libc::real;

bool IsHeard(const Connection& connection) {
  const ConnectionNames& names = connection.names;
  Endpoint local, peer;
  if (!ToEndpoint(names.local, names.local_bytes, local)) return false;
  if (!ToEndpoint(names.peer, names.peer_bytes, peer)) return false;
  if (local.address != peer.address) return false;
  return connection.name_was_held || PortNameIsHeld(peer.port);
}

// Whether a client that asks for a sign may speak SDP.
bool IsKnown(const Connection& connection) {
  const ConnectionNames& names = connection.names;
  Endpoint peer;
  return ToEndpoint(names.peer, names.peer_bytes, peer) && IsKnownToSpeak(names.peer, peer);
}

// A server that has said something without a request speaks TCP.
bool HasSpoken(int number) {
  char first = 0;
  return real.recv.get()(number, &first, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

}  // namespace

bool IsKnownToSpeak(const Name& peer, const Endpoint& endpoint) {
  return rules.IsPeer(endpoint.address) || engine.learned(peer) == Learned::kSpeaks;
}

int DecideConnected(int number) {
  const KeptErrno kept;
  const TableLock lock;
  Connection* const connection = table.Find(number);
  if (connection == nullptr || connection->state != State::kConnecting) return 0;
  FillNames(number, connection->names);
  if (connection->names.peer_bytes == 0) return 0;  // not connected yet, or not any more
  const Verdict verdict = connection->rule->verdict;
  connection->is_heard = IsHeard(*connection);
  if (verdict == Verdict::kBoth && !connection->is_heard && !IsKnown(*connection)) {
    MakePlain(*connection, Reason::kPeerNotKnown);
    return 0;
  }
  if (verdict != Verdict::kSdp && HasSpoken(number)) {
    MakePlain(*connection, Reason::kAnsweredPlain);
    return 0;
  }
  const int error = Relay(*connection, Begin::kConnects);
  if (error == 0) return 0;
  MakePlain(*connection, ReasonOf(error));
  return verdict != Verdict::kSdp ? 0 : error;
}

}  // namespace esdp::switching
