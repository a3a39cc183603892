#include "impl/switch/shim/handed_over.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "impl/switch/libc_calls.h"
#include "impl/switch/pair_name.h"
#include "impl/switch/shim/adoption.h"
#include "impl/switch/shim/decisions.h"
#include "impl/switch/shim/switch_taker.h"
#include "impl/switch/shim/table.h"

namespace esdp::switching {
namespace {

using libc::real;

// Who may name a pair as its engine does: an end of a stream pair has no name itself, as what was
// connected to a socket that listens has, and knows who made it.
bool IsOfTrustedPair(int number) {
  sockaddr_un own = {};
  socklen_t bytes = sizeof(own);
  if (real.getsockname.get()(number, reinterpret_cast<sockaddr*>(&own), &bytes) != 0) return false;
  if (own.sun_family != AF_UNIX || bytes != sizeof(own.sun_family)) return false;
  ucred maker = {};
  bytes = sizeof(maker);
  if (real.getsockopt.get()(number, SOL_SOCKET, SO_PEERCRED, &maker, &bytes) != 0) return false;
  return maker.uid == 0 || maker.uid == getuid() || maker.uid == geteuid();
}

// The number may lead to a connection that another process relays, or this one. Under a TableLock.
void AdoptHandedOver(int number) {
  sockaddr_un peer = {};
  socklen_t bytes = sizeof(peer);
  ConnectionNames names;
  if (real.getpeername.get()(number, reinterpret_cast<sockaddr*>(&peer), &bytes) != 0) return;
  if (!ReadPairName(peer, bytes, names) || !IsOfTrustedPair(number)) return;
  const ino_t inode = InodeOf(number);
  Connection* same = nullptr;  // as when a process hands a connection to itself
  table.ForEach([&](Connection& each) {
    if (IsSwitched(each.state) && each.inode == inode) same = &each;
  });
  if (same != nullptr) return table.AddNumber(number, *same);
  Connection* const connection = table.Insert(number, State::kRelayed);
  if (connection == nullptr) return;
  connection->foreign = connection->shared = true;
  connection->inode = inode;
  connection->names = names;
}

// `act` with each number that the message passes on. What it says of its own length is as wrong as the
// program has it: the system refuses it then.
template <typename Act>
void ForEachPassed(const msghdr& message, const Act& act) {
  const auto* const begin = static_cast<const unsigned char*>(message.msg_control);
  if (begin == nullptr) return;
  for (const cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr;
       each = CMSG_NXTHDR(const_cast<msghdr*>(&message), const_cast<cmsghdr*>(each))) {
    const auto at = static_cast<size_t>(reinterpret_cast<const unsigned char*>(each) - begin);
    if (each->cmsg_len < CMSG_LEN(0) || each->cmsg_len > message.msg_controllen - at) return;
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int number = -1;
      std::copy_n(CMSG_DATA(each) + i * sizeof(int), sizeof(int),
                  reinterpret_cast<unsigned char*>(&number));
      act(number);
    }
  }
}

}  // namespace

void AdoptInherited() {
  std::array<pollfd, 256> numbers = {};
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i].fd = static_cast<int>(i);
  const TableLock lock;
  if (real.poll.get()(numbers.data(), numbers.size(), 0) < 0) return;
  for (const pollfd& each : numbers) {
    if ((each.revents & POLLNVAL) == 0) AdoptHandedOver(each.fd);
  }
}

// Another process reads it, of which nobody knows.
void SwitchTaker::PassedOn(const msghdr& message) {
  const KeptErrno kept;
  ForEachPassed(message, [](int number) {
    if (!libc::taken_numbers.Has(number) || !IsThisProcess()) return;
    if (Connection* const known = table.Find(number)) known->options_set.NoteAll();
    (void)DecideUnseen(number);
  });
}

void SwitchTaker::HandedOver(const msghdr& message) {
  if (!IsThisProcess()) return;
  const KeptErrno kept;
  const TableLock lock;
  ForEachPassed(message, [](int number) {
    Forget(number);
    AdoptHandedOver(number);
  });
}

}  // namespace esdp::switching
