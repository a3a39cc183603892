#ifndef ESDP_TESTS_EXS_PAIR_H_
#define ESDP_TESTS_EXS_PAIR_H_

#include <netinet/in.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "sys/exs.h"

namespace esdp::exs {

// What a call answers that is to fail.
#define EXPECT_ERRNO(expected, call)     \
  do {                                   \
    errno = 0;                           \
    EXPECT_EQ(-1, (call));               \
    EXPECT_EQ(expected, errno) << #call; \
  } while (false)

sockaddr_in Loopback(uint16_t port);
inline const sockaddr* AsSockaddr(const sockaddr_in& in) {
  return reinterpret_cast<const sockaddr*>(&in);
}
inline exs_ahandle_t Handle(uintptr_t number) { return reinterpret_cast<exs_ahandle_t>(number); }

// libexs over qpip, a queue, and two sockets that are connected with each other on request.
class ExsTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // listener_ listens.
  void Listen();
  // client_ and server_ are connected.
  void Connect();
  // The next event of the queue; fails the test after 20 s.
  exs_event_t Next() { return Next(queue_); }
  exs_event_t Next(exs_qhandle_t queue);
  // Takes whatever is there.
  std::vector<exs_event_t> Drain();
  bool NothingComes(exs_qhandle_t queue);
  // Posts, and the event of it, which must be fine.
  void Send(int fd, const void* bytes, size_t len);
  size_t Receive(int fd, void* bytes, size_t len, int flags = MSG_WAITALL);

  exs_qhandle_t queue_ = EXS_QHANDLE_INVALID;
  int listener_ = -1;
  int client_ = -1;
  int server_ = -1;
  uint16_t port_ = 0;
};

// Bytes that tell where they are.
std::vector<uint8_t> Pattern(size_t size, uint8_t seed = 1);

}  // namespace esdp::exs

#endif  // ESDP_TESTS_EXS_PAIR_H_
