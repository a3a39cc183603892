#include "tests/exs/pair.h"

#include <arpa/inet.h>

namespace esdp::exs {

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(port);
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return in;
}

void ExsTest::SetUp() {
  ASSERT_EQ(EXS_VERSION1, exsx_init(EXS_VERSION1, "qpip"));
  queue_ = exs_qcreate(256);
  ASSERT_GE(queue_, 0);
}

void ExsTest::TearDown() {
  for (const int fd : {client_, server_, listener_}) {
    if (fd >= 0) exs_close(fd, EXSX_CLOSE_ABORT, EXS_QHANDLE_INVALID, nullptr);
  }
  exs_event_t event;
  timeval soon{5, 0};
  while (exs_qdelete(queue_) != 0 && errno == EBUSY) {
    if (exs_qdequeue(queue_, &event, 1, &soon) != 1) {
      ADD_FAILURE() << "an operation has no event";
      break;
    }
  }
}

void ExsTest::Listen() {
  listener_ = exs_socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_GE(listener_, 0);
  const sockaddr_in any = Loopback(0);
  ASSERT_EQ(0, exs_bind(listener_, AsSockaddr(any), sizeof(any)));
  ASSERT_EQ(0, exs_listen(listener_, 16));
  sockaddr_in bound{};
  socklen_t len = sizeof(bound);
  ASSERT_EQ(0, exs_getsockname(listener_, reinterpret_cast<sockaddr*>(&bound), &len));
  port_ = ntohs(bound.sin_port);
  ASSERT_NE(0, port_);
}

void ExsTest::Connect() {
  if (listener_ < 0) {
    ASSERT_NO_FATAL_FAILURE(Listen());
  }
  client_ = exs_socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_GE(client_, 0);
  const sockaddr_in to = Loopback(port_);
  ASSERT_EQ(0, exs_accept(listener_, nullptr, 1, 0, queue_, Handle(1)));
  ASSERT_EQ(0, exs_connect(client_, AsSockaddr(to), sizeof(to), 0, queue_, Handle(2)));
  for (int i = 0; i < 2; ++i) {
    const exs_event_t event = Next();
    ASSERT_EQ(0, event.exs_evt_errno);
    if (event.exs_evt_type == EXS_EVT_CONNECT) {
      EXPECT_EQ(client_, event.exs_evt_socket);
      EXPECT_EQ(Handle(2), event.exs_evt_ahandle);
    } else {
      ASSERT_EQ(EXS_EVT_ACCEPT, event.exs_evt_type);
      EXPECT_EQ(listener_, event.exs_evt_socket);
      EXPECT_EQ(Handle(1), event.exs_evt_ahandle);
      server_ = event.exs_evt_union.exs_evt_accept.exs_evt_newfd;
    }
  }
  ASSERT_GE(server_, 0);
}

exs_event_t ExsTest::Next(exs_qhandle_t queue) {
  exs_event_t event{};
  timeval bound{20, 0};
  EXPECT_EQ(1, exs_qdequeue(queue, &event, 1, &bound)) << "no event within 20 s";
  return event;
}

std::vector<exs_event_t> ExsTest::Drain() {
  std::vector<exs_event_t> events(64);
  timeval now{0, 0};
  const int taken = exs_qdequeue(queue_, events.data(), 64, &now);
  EXPECT_GE(taken, 0);
  events.resize(static_cast<size_t>(taken));
  return events;
}

bool ExsTest::NothingComes(exs_qhandle_t queue) {
  exs_event_t event;
  timeval moment{0, 50 * 1000};
  return exs_qdequeue(queue, &event, 1, &moment) == 0;
}

void ExsTest::Send(int fd, const void* bytes, size_t len) {
  ASSERT_EQ(0, exs_send(fd, bytes, len, 0, queue_, Handle(3), EXS_MHANDLE_UNREGISTERED));
  const exs_event_t event = Next();
  ASSERT_EQ(EXS_EVT_SEND, event.exs_evt_type);
  ASSERT_EQ(0, event.exs_evt_errno);
  ASSERT_EQ(len, event.exs_evt_union.exs_evt_xfer.exs_evt_length);
}

size_t ExsTest::Receive(int fd, void* bytes, size_t len, int flags) {
  EXPECT_EQ(0, exs_recv(fd, bytes, len, flags, queue_, Handle(4), EXS_MHANDLE_UNREGISTERED));
  const exs_event_t event = Next();
  EXPECT_EQ(EXS_EVT_RECV, event.exs_evt_type);
  EXPECT_EQ(0, event.exs_evt_errno);
  return event.exs_evt_union.exs_evt_xfer.exs_evt_length;
}

std::vector<uint8_t> Pattern(size_t size, uint8_t seed) {
  std::vector<uint8_t> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(seed + i % 251);
  return bytes;
}

}  // namespace esdp::exs
