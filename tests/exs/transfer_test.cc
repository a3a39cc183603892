#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>

#include "tests/exs/pair.h"

namespace esdp::exs {
namespace {

class TransferTest : public ExsTest {
 protected:
  void SetUp() override {
    ExsTest::SetUp();
    ASSERT_NO_FATAL_FAILURE(Connect());
  }
  void TearDown() override {
    ExsTest::TearDown();
    for (const exs_mhandle_t memory : registered_) {
      while (exs_mderegister(memory) != 0 && errno == EBUSY) usleep(1000);
    }
  }
  exs_mhandle_t Register(void* bytes, size_t len) {
    const exs_mhandle_t memory = exs_mregister(bytes, len, 0);
    EXPECT_GE(memory, 0);
    registered_.push_back(memory);
    return memory;
  }

  std::vector<exs_mhandle_t> registered_;
};

TEST_F(TransferTest, RegisteredMemoryOfEverySizeArrivesAsItWasAndLargeIsZeroCopy) {
  for (const size_t size : {1u, 63u, 4096u, 65536u, 1000003u}) {
    SCOPED_TRACE(size);
    std::vector<uint8_t> from = Pattern(size);
    std::vector<uint8_t> to(size);
    const exs_mhandle_t out = Register(from.data(), size);
    const exs_mhandle_t in = Register(to.data(), size);
    ASSERT_EQ(0, exs_recv(server_, to.data(), size, MSG_WAITALL, queue_, Handle(7), in));
    ASSERT_EQ(0, exs_send(client_, from.data(), size, 0, queue_, Handle(8), out));
    for (int i = 0; i < 2; ++i) {
      const exs_event_t event = Next();
      const bool sent = event.exs_evt_type == EXS_EVT_SEND;
      EXPECT_EQ(0, event.exs_evt_errno);
      EXPECT_EQ(sent ? client_ : server_, event.exs_evt_socket);
      EXPECT_EQ(Handle(sent ? 8 : 7), event.exs_evt_ahandle);
      const exs_evt_xfer_t& told = event.exs_evt_union.exs_evt_xfer;
      EXPECT_EQ(size, told.exs_evt_length);
      EXPECT_EQ(sent ? from.data() : to.data(), told.exs_evt_buffer);
      EXPECT_EQ(sent ? out : in, told.exs_evt_mhandle);
      if (size >= 1000003) {
        EXPECT_NE(0u, event.exs_evt_flags & EXSX_EVF_ZEROCOPY);
      }
      if (size < 1000) {
        EXPECT_NE(0u, event.exs_evt_flags & EXSX_EVF_COPIED);
      }
    }
    EXPECT_EQ(from, to);
  }
}

TEST_F(TransferTest, MemoryThatNobodyRegisteredArrivesAndLargeIsZeroCopy) {
  for (const size_t size : {1u, 100000u, 3000000u}) {
    SCOPED_TRACE(size);
    const std::vector<uint8_t> from = Pattern(size);
    std::vector<uint8_t> to(size);
    ASSERT_EQ(0, exs_recv(server_, to.data(), size, MSG_WAITALL, queue_, Handle(1),
                          EXS_MHANDLE_UNREGISTERED));
    ASSERT_EQ(0,
              exs_send(client_, from.data(), size, 0, queue_, Handle(2), EXS_MHANDLE_UNREGISTERED));
    for (int i = 0; i < 2; ++i) {
      const exs_event_t event = Next();
      EXPECT_EQ(0, event.exs_evt_errno);
      if (size == 3000000) {
        EXPECT_NE(0u, event.exs_evt_flags & EXSX_EVF_ZEROCOPY);
      }
    }
    EXPECT_EQ(from, to);
  }
}

TEST_F(TransferTest, UnregisteredSendsThatNobodyReceivesAreAcceptedUntilTheQueueIsFull) {
  const std::vector<uint8_t> from = Pattern(60000);
  int posted = 0;
  while (exs_send(client_, from.data(), from.size(), 0, queue_, nullptr,
                  EXS_MHANDLE_UNREGISTERED) == 0) {
    ++posted;
  }
  EXPECT_EQ(EAGAIN, errno);
  EXPECT_EQ(256, posted);
  std::vector<uint8_t> to(from.size());
  const exs_qhandle_t other = exs_qcreate(1);
  for (int i = 0; i < posted; ++i) {
    ASSERT_EQ(0, exs_recv(server_, to.data(), to.size(), MSG_WAITALL, other, nullptr,
                          EXS_MHANDLE_UNREGISTERED));
    EXPECT_EQ(0, Next(other).exs_evt_errno);
    EXPECT_EQ(0, Next(queue_).exs_evt_errno);
    EXPECT_EQ(from, to);
  }
  EXPECT_EQ(0, exs_qdelete(other));
}

TEST_F(TransferTest, AfterEagainAPostIsAcceptedOnceAnEventWasTaken) {
  const exs_qhandle_t small = exs_qcreate(2);
  uint8_t byte = 1;
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(0, exs_send(client_, &byte, 1, 0, small, nullptr, EXS_MHANDLE_UNREGISTERED));
  }
  EXPECT_ERRNO(EAGAIN, exs_send(client_, &byte, 1, 0, small, nullptr, EXS_MHANDLE_UNREGISTERED));
  EXPECT_EQ(0, Next(small).exs_evt_errno);
  EXPECT_EQ(0, exs_send(client_, &byte, 1, 0, small, nullptr, EXS_MHANDLE_UNREGISTERED));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(0, Next(small).exs_evt_errno);
  EXPECT_EQ(0, exs_qdelete(small));
}

TEST_F(TransferTest, TheSameMemoryMayBeInSixteenSendsAtOnce) {
  std::vector<uint8_t> ring = Pattern(2 * 100000);
  const exs_mhandle_t memory = Register(ring.data(), ring.size());
  for (uintptr_t i = 0; i < 16; ++i) {
    ASSERT_EQ(
        0, exs_send(client_, ring.data() + (i % 2) * 100000, 100000, 0, queue_, Handle(i), memory));
  }
  std::vector<uint8_t> to(16 * 100000);
  const exs_qhandle_t other = exs_qcreate(1);
  ASSERT_EQ(0, exs_recv(server_, to.data(), to.size(), MSG_WAITALL, other, nullptr,
                        EXS_MHANDLE_UNREGISTERED));
  std::array<exs_event_t, 16> events;
  ASSERT_EQ(8, exs_qdequeue(queue_, events.data(), -8, nullptr));
  ASSERT_EQ(8, exs_qdequeue(queue_, events.data() + 8, -8, nullptr));
  for (uintptr_t i = 0; i < 16; ++i) EXPECT_EQ(Handle(i), events[i].exs_evt_ahandle);
  EXPECT_EQ(to.size(), Next(other).exs_evt_union.exs_evt_xfer.exs_evt_length);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_TRUE(std::equal(ring.begin(), ring.end(), to.begin() + static_cast<long>(i * 200000)));
  }
  EXPECT_EQ(0, exs_qdelete(other));
}

TEST_F(TransferTest, SharedMappingThatIsNoWholeNumberOfPagesCanBeRegisteredAndSent) {
  const size_t size = 2 * 1024 * 1024 + 100;
  void* mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(MAP_FAILED, mapped);
  const exs_mhandle_t memory = exs_mregister(mapped, size, EXS_MRF_SHARED);
  ASSERT_GE(memory, 0);
  char* from = static_cast<char*>(mapped) + 8;
  ASSERT_EQ(0, exs_send(client_, from, 1024 * 1024, 0, queue_, nullptr, memory));
  std::vector<uint8_t> to(1024 * 1024);
  const exs_qhandle_t other = exs_qcreate(1);
  ASSERT_EQ(0, exs_recv(server_, to.data(), to.size(), MSG_WAITALL, other, nullptr,
                        EXS_MHANDLE_UNREGISTERED));
  EXPECT_EQ(0, Next(other).exs_evt_errno);
  EXPECT_EQ(0, Next().exs_evt_errno);
  while (exs_mderegister(memory) != 0 && errno == EBUSY) usleep(1000);
  EXPECT_EQ(0, munmap(mapped, size));
  EXPECT_EQ(0, exs_qdelete(other));
}

TEST_F(TransferTest, MessagesGatherAndScatterRegisteredAndUnregisteredRanges) {
  std::vector<uint8_t> one = Pattern(1000, 1);
  std::vector<uint8_t> two = Pattern(200000, 2);
  std::vector<uint8_t> in(201000);
  exs_iovec_t from[3] = {{one.data(), one.size(), EXS_MHANDLE_UNREGISTERED, 0, {}},
                         {nullptr, 0, EXS_MHANDLE_UNREGISTERED, 0, {}},
                         {two.data(), two.size(), Register(two.data(), two.size()), 0, {}}};
  exs_iovec_t to[2] = {{in.data(), 70000, Register(in.data(), in.size()), 0, {}},
                       {in.data() + 70000, 131000, EXS_MHANDLE_UNREGISTERED, 0, {}}};
  exs_msghdr_t sent = {from, 3, {}};
  exs_msghdr_t received = {to, 2, {}};
  ASSERT_EQ(0, exs_recvmsg(server_, &received, MSG_WAITALL, queue_, Handle(1)));
  ASSERT_EQ(0, exs_sendmsg(client_, &sent, 0, queue_, Handle(2)));
  for (exs_iovec_t& part : from) part = {};  // the vector is copied
  for (int i = 0; i < 2; ++i) {
    const exs_event_t event = Next();
    EXPECT_EQ(0, event.exs_evt_errno);
    const exs_evt_xfermsg_t& told = event.exs_evt_union.exs_evt_xfermsg;
    EXPECT_EQ(event.exs_evt_type == EXS_EVT_SENDMSG ? &sent : &received, told.exs_evt_msg);
    EXPECT_EQ(201000u, told.exs_evt_length);
  }
  EXPECT_TRUE(std::equal(one.begin(), one.end(), in.begin()));
  EXPECT_TRUE(std::equal(two.begin(), two.end(), in.begin() + 1000));
}

// As programs for this API run: odd sizes, more sends out than buffers, half of the events at a
// time, an alarm that ends it, and then a wait for exactly what is pending.
TEST_F(TransferTest, ASenderThatAnAlarmEndsComesToItsEndAndMissesNoEvent) {
  static volatile sig_atomic_t over = 0;
  over = 0;
  struct sigaction action {};
  action.sa_handler = [](int) { over = 1; };
  sigaction(SIGALRM, &action, nullptr);
  const exs_qhandle_t other = exs_qcreate(1);
  std::thread sink([this, other] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    std::vector<uint8_t> to(70001);
    exs_event_t event{};
    do {
      EXPECT_EQ(
          0, exs_recv(server_, to.data(), to.size(), 0, other, nullptr, EXS_MHANDLE_UNREGISTERED));
      EXPECT_EQ(1, exs_qdequeue(other, &event, -1, nullptr));
    } while (event.exs_evt_errno == 0 && (event.exs_evt_flags & EXSX_EVF_EOF) == 0);
  });
  std::vector<uint8_t> ring(2 * 1024 * 1024);
  const exs_mhandle_t memory = Register(ring.data(), ring.size());
  std::array<exs_event_t, 16> events;
  int pending = 0;
  int failed = 0;
  alarm(1);
  for (size_t i = 0; over == 0; ++i) {
    const size_t size = i % 3 == 0 ? 1 : i % 3 == 1 ? 4097 : 1024 * 1024 - 7;
    if (pending < 16 && exs_send(client_, ring.data() + i % 2 * 1024 * 1024, size, 0, queue_,
                                 nullptr, memory) == 0) {
      ++pending;
      continue;
    }
    const int taken = exs_qdequeue(queue_, events.data(), -(pending >> 1), nullptr);
    ASSERT_TRUE(taken >= 0 || errno == EINTR);
    pending -= std::max(taken, 0);
    for (int k = 0; k < taken; ++k) failed += events[static_cast<size_t>(k)].exs_evt_errno != 0;
  }
  EXPECT_EQ(pending, exs_qdequeue(queue_, events.data(), -pending, nullptr));
  EXPECT_EQ(0, failed);
  ASSERT_EQ(0, exs_shutdown(client_, EXS_SHUT_WR, 0, queue_, nullptr));
  EXPECT_EQ(0, Next().exs_evt_errno);
  sink.join();
  EXPECT_EQ(0, exs_qdelete(other));
}

TEST_F(TransferTest, WithoutWaitallAReceiveEndsWithWhatIsThere) {
  const std::vector<uint8_t> from = Pattern(10);
  std::vector<uint8_t> to(100);
  ASSERT_NO_FATAL_FAILURE(Send(client_, from.data(), from.size()));
  EXPECT_EQ(10u, Receive(server_, to.data(), to.size(), 0));
}

TEST_F(TransferTest, AnUrgentByteIsToldByTheReceiveThatGetsIt) {
  const uint8_t byte = 7;
  ASSERT_EQ(0, exs_send(client_, &byte, 1, MSG_OOB | MSG_NOSIGNAL, queue_, nullptr,
                        EXS_MHANDLE_UNREGISTERED));
  EXPECT_EQ(0, Next().exs_evt_errno);
  uint8_t to = 0;
  ASSERT_EQ(0, exs_recv(server_, &to, 1, 0, queue_, nullptr, EXS_MHANDLE_UNREGISTERED));
  const exs_event_t event = Next();
  EXPECT_NE(0u, event.exs_evt_flags & EXSX_EVF_URGENT);
  EXPECT_EQ(7, to);
}

// --- receives that take nothing ---

class PeekTest : public TransferTest {
 protected:
  std::vector<uint8_t> Look(size_t len, int flags = 0, unsigned int* told = nullptr) {
    std::vector<uint8_t> to(len);
    EXPECT_EQ(0, exs_recv(server_, to.data(), len, MSG_PEEK | flags, queue_, Handle(9),
                          EXS_MHANDLE_UNREGISTERED));
    const exs_event_t event = Next();
    EXPECT_EQ(Handle(9), event.exs_evt_ahandle);
    EXPECT_EQ(0, event.exs_evt_errno);
    if (told != nullptr) *told = event.exs_evt_flags;
    to.resize(event.exs_evt_union.exs_evt_xfer.exs_evt_length);
    return to;
  }
  static std::vector<uint8_t> Part(const std::vector<uint8_t>& of, size_t begin, size_t end) {
    return {of.begin() + static_cast<long>(begin), of.begin() + static_cast<long>(end)};
  }
};

TEST_F(PeekTest, ItTellsTheBytesThatTheNextReceivesGet) {
  std::vector<uint8_t> from = Pattern(1000);
  ASSERT_NO_FATAL_FAILURE(Send(client_, from.data(), from.size()));
  EXPECT_EQ(Part(from, 0, 4), Look(4));
  EXPECT_EQ(from, Look(1000, MSG_WAITALL));
  std::vector<uint8_t> to(1500);
  EXPECT_EQ(100u, Receive(server_, to.data(), 100));
  EXPECT_EQ(Part(from, 100, 1000), Look(5000));
  EXPECT_EQ(900u, Receive(server_, to.data() + 100, 1400, 0));
  EXPECT_EQ(from, Part(to, 0, 1000));
  ASSERT_NO_FATAL_FAILURE(Send(client_, from.data(), from.size()));
  EXPECT_EQ(Part(from, 0, 10), Look(10));
  ASSERT_NO_FATAL_FAILURE(Send(client_, from.data(), 500));
  EXPECT_EQ(1500u, Receive(server_, to.data(), 1500)) << "the rest comes behind it";
  EXPECT_EQ(from, Part(to, 0, 1000));
  EXPECT_EQ(Part(from, 0, 500), Part(to, 1000, 1500));
}

TEST_F(PeekTest, ItSeesWhatHasComeSinceItLookedLast) {
  const std::vector<uint8_t> from = Pattern(300);
  ASSERT_NO_FATAL_FAILURE(Send(client_, from.data(), 100));
  EXPECT_EQ(100u, Look(200).size());
  ASSERT_NO_FATAL_FAILURE(Send(client_, from.data() + 100, 200));
  std::vector<uint8_t> seen;
  while (seen.size() < 300) seen = Look(1000);
  EXPECT_EQ(from, seen);
  std::vector<uint8_t> to(300);
  EXPECT_EQ(300u, Receive(server_, to.data(), 300));
  EXPECT_EQ(from, to);
}

TEST_F(PeekTest, ItStandsInLineWithReceivesBeforeAndBehind) {
  const std::vector<uint8_t> from = Pattern(3000);
  std::vector<uint8_t> to(3000);
  std::vector<uint8_t> seen(2000);
  std::vector<uint8_t> registered(1000);
  const exs_mhandle_t memory = Register(registered.data(), registered.size());
  const auto post = [&](uint8_t* at, size_t len, int flags, uintptr_t handle, exs_mhandle_t in) {
    ASSERT_EQ(0, exs_recv(server_, at, len, flags, queue_, Handle(handle), in));
  };
  post(to.data(), 1000, MSG_WAITALL, 1, EXS_MHANDLE_UNREGISTERED);
  post(seen.data(), 2000, MSG_PEEK | MSG_WAITALL, 2, EXS_MHANDLE_UNREGISTERED);
  post(registered.data(), 1000, MSG_WAITALL, 3, memory);
  exs_iovec_t parts[2] = {{to.data() + 2000, 500, EXS_MHANDLE_UNREGISTERED, 0, {}},
                          {to.data() + 2500, 500, EXS_MHANDLE_UNREGISTERED, 0, {}}};
  exs_msghdr_t message = {parts, 2, {}};
  ASSERT_EQ(0, exs_recvmsg(server_, &message, MSG_WAITALL, queue_, Handle(4)));
  const exs_qhandle_t other = exs_qcreate(4);
  ASSERT_EQ(0, exs_send(client_, from.data(), 3000, 0, other, nullptr, EXS_MHANDLE_UNREGISTERED));
  for (uintptr_t i = 1; i <= 4; ++i) {
    const exs_event_t event = Next();
    EXPECT_EQ(Handle(i), event.exs_evt_ahandle);
    EXPECT_EQ(0, event.exs_evt_errno);
  }
  EXPECT_EQ(Part(from, 0, 1000), Part(to, 0, 1000));
  EXPECT_EQ(Part(from, 1000, 3000), seen);
  EXPECT_EQ(Part(from, 1000, 2000), registered);
  EXPECT_EQ(Part(from, 2000, 3000), Part(to, 2000, 3000));
  EXPECT_EQ(0, Next(other).exs_evt_errno);
  EXPECT_EQ(0, exs_qdelete(other));
}

TEST_F(PeekTest, WhatWasReadAheadKeepsTheSocketReadable) {
  const uint8_t byte = 5;
  ASSERT_NO_FATAL_FAILURE(Send(client_, &byte, 1));
  EXPECT_EQ(1u, Look(10).size());
  exs_pollfd_t asked = {server_, EXS_POLLIN, 0, {}};
  ASSERT_EQ(0, exs_poll(&asked, 1, 0, queue_, nullptr));
  EXPECT_EQ(1, Next().exs_evt_union.exs_evt_poll.exs_evt_ready);
  EXPECT_EQ(EXS_POLLIN, asked.exs_pfd_revents);
}

TEST_F(PeekTest, AnUrgentByteAndTheEndAreToldAndStay) {
  const std::vector<uint8_t> from = Pattern(10);
  ASSERT_EQ(0,
            exs_send(client_, from.data(), 10, MSG_OOB, queue_, nullptr, EXS_MHANDLE_UNREGISTERED));
  EXPECT_EQ(0, Next().exs_evt_errno);
  ASSERT_NO_FATAL_FAILURE(Send(client_, from.data(), 10));
  ASSERT_EQ(0, exs_shutdown(client_, EXS_SHUT_WR, 0, queue_, nullptr));
  EXPECT_EQ(0, Next().exs_evt_errno);
  unsigned int told = 0;
  EXPECT_EQ(from, Look(100, 0, &told));
  EXPECT_NE(0u, told & EXSX_EVF_URGENT);
  uint8_t to[20];
  ASSERT_EQ(0, exs_recv(server_, to, 20, MSG_WAITALL, queue_, nullptr, EXS_MHANDLE_UNREGISTERED));
  const exs_event_t event = Next();
  EXPECT_EQ(10u, event.exs_evt_union.exs_evt_xfer.exs_evt_length) << "the urgent byte ends it";
  EXPECT_NE(0u, event.exs_evt_flags & EXSX_EVF_URGENT);
  EXPECT_EQ(from, Look(20, MSG_WAITALL, &told));
  EXPECT_NE(0u, told & EXSX_EVF_EOF);
  EXPECT_EQ(10u, Receive(server_, to, 20));
  EXPECT_TRUE(Look(20, 0, &told).empty());
  EXPECT_NE(0u, told & EXSX_EVF_EOF);
}

TEST_F(PeekTest, ACancelOrACloseEndsOneThatWaits) {
  uint8_t byte = 0;
  const auto post = [&](int flags) {
    return exs_recv(server_, &byte, 1, flags, queue_, nullptr, EXS_MHANDLE_UNREGISTERED);
  };
  ASSERT_EQ(0, post(MSG_PEEK));
  EXPECT_EQ(1, exs_cancel(server_, nullptr, EXS_CAF_FILDES));
  EXPECT_EQ(ECANCELED, Next().exs_evt_errno);
  ASSERT_EQ(0, post(MSG_PEEK));
  ASSERT_EQ(0, post(0));
  ASSERT_EQ(0, exs_close(server_, EXSX_CLOSE_ABORT, queue_, nullptr));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ECANCELED, Next().exs_evt_errno);
  EXPECT_EQ(EXS_EVT_CLOSE, Next().exs_evt_type);
  server_ = -1;
}

TEST_F(TransferTest, WrongArgumentsOfTransfersAreRefusedAndPostNothing) {
  std::vector<uint8_t> bytes(4096);
  const exs_mhandle_t memory = Register(bytes.data(), bytes.size());
  uint8_t* at = bytes.data();
  EXPECT_ERRNO(EBADF, exs_send(-1, at, 1, 0, queue_, nullptr, memory));
  EXPECT_ERRNO(EBADF, exs_send(client_, at, 1, 0, EXS_QHANDLE_INVALID, nullptr, memory));
  EXPECT_ERRNO(EBADF, exs_send(client_, at, 1, 0, client_, nullptr, memory));
  EXPECT_ERRNO(ENOTSOCK, exs_send(queue_, at, 1, 0, queue_, nullptr, memory));
  EXPECT_ERRNO(EBADF, exs_send(client_, at, 1, 0, queue_, nullptr, EXS_MHANDLE_INVALID));
  EXPECT_ERRNO(EBADF, exs_send(client_, at, 1, 0, queue_, nullptr, memory + 12345));
  EXPECT_ERRNO(EBADF, exs_send(client_, at, 1, 0, queue_, nullptr, -77));
  EXPECT_ERRNO(EFAULT, exs_send(client_, at, 4097, 0, queue_, nullptr, memory));
  EXPECT_ERRNO(EFAULT, exs_send(client_, at - 1, 2, 0, queue_, nullptr, memory));
  EXPECT_ERRNO(EFAULT, exs_send(client_, at + 4096, 1, 0, queue_, nullptr, memory));
  EXPECT_ERRNO(EFAULT, exs_send(client_, at + 1, SIZE_MAX, 0, queue_, nullptr, memory));
  EXPECT_ERRNO(EFAULT, exs_send(client_, nullptr, 1, 0, queue_, nullptr, memory));
  EXPECT_ERRNO(EFAULT, exs_send(client_, nullptr, 1, 0, queue_, nullptr, EXS_MHANDLE_UNREGISTERED));
  EXPECT_ERRNO(EFAULT, exs_recv(client_, nullptr, 1, 0, queue_, nullptr, EXS_MHANDLE_UNREGISTERED));
  EXPECT_ERRNO(EINVAL, exs_send(client_, at, 1, MSG_PEEK, queue_, nullptr, memory));
  EXPECT_ERRNO(EINVAL, exs_send(client_, at, 1, 1 << 30, queue_, nullptr, memory));
  EXPECT_ERRNO(EINVAL, exs_recv(client_, at, 1, MSG_NOSIGNAL << 10, queue_, nullptr, memory));
  EXPECT_ERRNO(EOPNOTSUPP, exs_recv(client_, at, 1, MSG_OOB, queue_, nullptr, memory));
  exs_msghdr_t message = {nullptr, 1, {}};
  EXPECT_ERRNO(EFAULT, exs_sendmsg(client_, nullptr, 0, queue_, nullptr));
  EXPECT_ERRNO(EFAULT, exs_sendmsg(client_, &message, 0, queue_, nullptr));
  message.exs_msg_iovlen = 1025;
  EXPECT_ERRNO(EINVAL, exs_recvmsg(client_, &message, 0, queue_, nullptr));
  exs_iovec_t part = {at, 4097, memory, 0, {}};
  message = {&part, 1, {}};
  EXPECT_ERRNO(EFAULT, exs_sendmsg(client_, &message, 0, queue_, nullptr));
  int pipes[2];
  ASSERT_EQ(0, pipe(pipes));
  EXPECT_ERRNO(ENOTSOCK, exs_send(pipes[1], at, 1, 0, queue_, nullptr, memory));
  const int plain = socket(AF_INET, SOCK_DGRAM, 0);
  EXPECT_ERRNO(EOPNOTSUPP, exs_send(plain, at, 1, 0, queue_, nullptr, memory));
  for (const int fd : {pipes[0], pipes[1], plain}) close(fd);
  EXPECT_TRUE(Drain().empty());
  EXPECT_EQ(0, exs_mderegister(memory));
  EXPECT_ERRNO(EBADF, exs_send(client_, at, 1, 0, queue_, nullptr, memory));
  registered_.clear();
}

TEST_F(TransferTest, MemoryInUseIsNotDeregistered) {
  std::vector<uint8_t> bytes(4096);
  const exs_mhandle_t memory = exs_mregister(bytes.data(), bytes.size(), 0);
  ASSERT_EQ(0, exs_recv(client_, bytes.data(), 1, 0, queue_, nullptr, memory));
  EXPECT_ERRNO(EBUSY, exs_mderegister(memory));
  EXPECT_EQ(1, exs_cancel(client_, nullptr, EXS_CAF_FILDES));
  EXPECT_EQ(ECANCELED, Next().exs_evt_errno);
  EXPECT_EQ(0, exs_mderegister(memory));
  EXPECT_ERRNO(EBADF, exs_mderegister(memory));
}

}  // namespace
}  // namespace esdp::exs
