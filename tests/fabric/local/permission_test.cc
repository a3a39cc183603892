// Systems that let no process read the memory of another, in part or at all, and users that are not
// the same: what is shown is carried some other way, or nobody is there.

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "impl/base/shared_memory.h"
#include "impl/fabric/local/local_fabric.h"
#include "tests/fabric/local/raw_end.h"
#include "tests/fabric/local/remote_fabric.h"

namespace esdp::fabric::local {
namespace {

constexpr size_t kBytes = 1 << 20;
constexpr uid_t kSomebody = 12345;

// What the child does before it opens its fabric; false: the system does not let it.
using Restriction = std::function<bool()>;

bool DenyReading() {
  std::array<sock_filter, 4> filter{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

bool Write(const char* path, const std::string& text) {
  const Descriptor file(open(path, O_WRONLY | O_CLOEXEC));
  return file.is_open() &&
         write(file.number(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// The same user, seen from there and from here.
bool EnterUserNamespace() {
  const std::string user = std::to_string(geteuid());
  return unshare(CLONE_NEWUSER) == 0 && Write("/proc/self/uid_map", user + " " + user + " 1");
}

bool EnterNetworkNamespace() {
  const uid_t user = geteuid();
  if (unshare(CLONE_NEWNET) == 0) return true;
  return unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 &&
         Write("/proc/self/uid_map", std::to_string(user) + " " + std::to_string(user) + " 1");
}

bool BecomeSomebody() { return setresuid(kSomebody, kSomebody, kSomebody) == 0; }

class PermissionTest : public ::testing::Test {
 protected:
  // The reader is a child under the restriction; the source is here and shows what lies in a file.
  void Open(const Restriction& restriction, Share share) {
    const std::shared_ptr<std::byte> flag = AllocateForBoth(1);
    target_ = AllocateForBoth(kBytes);
    std::fill_n(target_.get(), kBytes, std::byte{0});
    reader_ = MakeRemoteFabric(
        [&] {
          *flag = static_cast<std::byte>(restriction() ? 1 : 2);
          return *MakeLocalFabric();
        },
        Farewell::kOrderly);
    LocalOptions options;
    options.share = share;
    source_ = *MakeLocalFabric(options);
    listener_ = *source_->Listen(Loopback(), 8);
    reader_pair_ = *reader_->CreateQueuePair({});
    source_pair_ = *source_->CreateQueuePair({});
    ASSERT_TRUE(reader_
                    ->Connect(reader_pair_, Address{}, *source_->ListenerAddress(listener_), {},
                              kTimeInfinite)
                    .ok());
    is_restricted_ = *flag == std::byte{1};
  }

  // What the reader hears of its connect.
  RendezvousEvent Outcome() {
    RendezvousEvent event;
    for (int i = 0; i < 2000; ++i) {
      (void)source_->Poll({});
      while (source_->PollRendezvous(event)) {
        if (event.type != RendezvousType::kConnectRequest) continue;
        EXPECT_TRUE(source_->Accept(event.request, source_pair_, {}).ok());
      }
      (void)reader_->Poll({});
      if (reader_->PollRendezvous(event)) return event;
    }
    ADD_FAILURE() << "no outcome";
    return event;
  }

  void PostRead() {
    memory_ = *MakeWritableMemory(kBytes, 0);
    std::byte* const from = memory_.mapping.base();
    for (size_t i = 0; i < kBytes; ++i) from[i] = static_cast<std::byte>(i * 31 + i / 99);
    const auto shared = source_->RegisterShared({memory_.file.number(), 0}, from, kBytes, {});
    ASSERT_TRUE(shared.ok()) << shared.status();
    const RemoteRange shown =
        *source_->Bind(source_pair_, *shared, from, kBytes, {.remote_read = true});
    const RegionId region = *reader_->Register(target_.get(), kBytes, {.local_write = true});
    const ScatterEntry entry{region, target_.get(), kBytes};
    const SendWork read{
        .opcode = Opcode::kRead, .entries = &entry, .entry_count = 1, .remote = shown};
    ASSERT_TRUE(reader_->PostSend(reader_pair_, {&read, 1}).ok());
  }
  bool Completes(bool with_the_source) {
    std::array<Completion, 4> completions;
    for (int i = 0; i < 2000; ++i) {
      if (with_the_source) (void)source_->Poll({});
      if (reader_->Poll(absl::MakeSpan(completions)) == 0) continue;
      EXPECT_EQ(completions[0].status, WorkStatus::kSuccess);
      return std::equal(target_.get(), target_.get() + kBytes, memory_.mapping.base());
    }
    return false;
  }

  void ReadUnder(const Restriction& restriction, Share share, bool needs_the_source) {
    ASSERT_NO_FATAL_FAILURE(Open(restriction, share));
    if (!is_restricted_) GTEST_SKIP() << "the system does not let a program be restricted so";
    ASSERT_EQ(Outcome().type, RendezvousType::kEstablished);
    (void)source_->Poll({});
    RendezvousEvent event;
    while (source_->PollRendezvous(event)) {
    }
    ASSERT_NO_FATAL_FAILURE(PostRead());
    if (needs_the_source) {
      EXPECT_FALSE(Completes(/*with_the_source=*/false));
    }
    EXPECT_TRUE(Completes(needs_the_source));
  }

  std::shared_ptr<std::byte> target_;
  WritableMemory memory_;
  std::unique_ptr<Fabric> reader_;
  std::unique_ptr<Fabric> source_;
  ListenerId listener_ = ListenerId::kNone;
  QueuePairId reader_pair_ = QueuePairId::kNone;
  QueuePairId source_pair_ = QueuePairId::kNone;
  bool is_restricted_ = false;
};

TEST_F(PermissionTest, WhereReadingIsProvedTheSourceHasNoPartInIt) {
  if (!WhyCopiedTwice().empty()) GTEST_SKIP() << WhyCopiedTwice();
  ReadUnder([] { return true; }, Share::kProved, /*needs_the_source=*/false);
}

TEST_F(PermissionTest, WhoMayNotReadIsShownNothingAndAsks) {
  ReadUnder(DenyReading, Share::kProved, /*needs_the_source=*/true);
}

TEST_F(PermissionTest, WhoMayNotReadIsPassedFilesWhereUsersAreTrusted) {
  ReadUnder(DenyReading, Share::kUser, /*needs_the_source=*/false);
}

TEST_F(PermissionTest, ToWhomNothingIsSharedAsks) {
  ReadUnder([] { return true; }, Share::kNever, /*needs_the_source=*/true);
}

TEST_F(PermissionTest, FromAnotherUserNamespaceNothingIsProved) {
  ReadUnder(EnterUserNamespace, Share::kProved, /*needs_the_source=*/true);
}

TEST_F(PermissionTest, ForAnotherUserNobodyIsThere) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  ASSERT_NO_FATAL_FAILURE(Open(BecomeSomebody, Share::kProved));
  const RendezvousEvent outcome = Outcome();
  EXPECT_EQ(outcome.type, RendezvousType::kConnectFailed);
  EXPECT_EQ(outcome.cause, Cause::kRefused);
}

TEST_F(PermissionTest, FromAnotherNetworkNamespaceNobodyIsThere) {
  ASSERT_NO_FATAL_FAILURE(Open(EnterNetworkNamespace, Share::kProved));
  if (!is_restricted_) GTEST_SKIP() << "the system gives no network namespace";
  EXPECT_EQ(Outcome().type, RendezvousType::kConnectFailed);
}

}  // namespace
}  // namespace esdp::fabric::local
