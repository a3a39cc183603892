#include <sys/socket.h>
#include <unistd.h>

#include "tests/exs/pair.h"

// Listeners of the system that are closed by close(2) while the library looks at them.

namespace esdp::exs {
namespace {

using PlainCloseTest = ExsTest;

TEST_F(PlainCloseTest, AListenerThatWasClosedByCloseEndsItsAccepts) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in any = Loopback(0);
  ASSERT_EQ(0, bind(listener, AsSockaddr(any), sizeof(any)));
  ASSERT_EQ(0, listen(listener, 4));
  ASSERT_EQ(0, exs_accept(listener, nullptr, 2, 0, queue_, Handle(1)));
  ASSERT_EQ(0, close(listener));
  const exs_event_t event = Next();
  EXPECT_EQ(EXS_EVT_ACCEPT, event.exs_evt_type);
  EXPECT_EQ(ECANCELED, event.exs_evt_errno);
  EXPECT_ERRNO(EBADF, exs_accept(listener, nullptr, 1, 0, queue_, nullptr));
}

}  // namespace
}  // namespace esdp::exs
