#include <execinfo.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "esdp/context.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// The system has no memory: whichever allocation of a program's life fails, no call throws, no lock
// stays taken, every accepted operation ends once, and everything can be closed.

namespace {

std::atomic<int64_t> g_left{-1};  // allocations until one fails; negative: none does
std::atomic<bool> g_has_failed{false};
std::array<void*, 64> g_callers;  // of the one that failed
int g_depth = 0;

void* Allocate(size_t size, size_t alignment) {
  if (g_left.load(std::memory_order_relaxed) >= 0 && g_left.fetch_sub(1) == 0) {
    g_depth = backtrace(g_callers.data(), static_cast<int>(g_callers.size()));
    g_has_failed = true;
    throw std::bad_alloc();
  }
  void* const memory =
      std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace

void* operator new(size_t size) { return Allocate(size, alignof(std::max_align_t)); }
void* operator new[](size_t size) { return Allocate(size, alignof(std::max_align_t)); }
void* operator new(size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

namespace esdp::contract {
namespace {

constexpr size_t kLarge = 200'000;

// What the test itself needs is always there.
class Spared {
 public:
  Spared() : left_(g_left.exchange(-1)) {}
  ~Spared() { g_left = left_; }

 private:
  const int64_t left_;
};

// Two contexts moved by this thread, and a course of calls that goes as far as memory allows.
class Course {
 public:
  explicit Course(Progress progress) : progress_(progress) {}

  void Run() {
    if (Open(client_, "client") && Open(server_, "server") && Join()) Exchange();
    Close();
  }

 private:
  struct Side {
    Context context;
    EventQueue queue;
    Socket socket;
    Region region;
    std::map<OpId, int> ends;
  };

  // An operation: two contexts may have the same name for two of them.
  struct Op {
    Side* side = nullptr;
    OpId id = OpId::kNone;
  };

  // False, and said why not, unless it is the memory that is missing.
  static bool IsGood(const absl::Status& status, const char* call) {
    if (status.ok()) return true;
    const Spared spared;
    EXPECT_EQ(KindOf(status), ErrorKind::kMemory) << call << ": " << status;
    return false;
  }
  template <typename T>
  static bool IsGood(const absl::StatusOr<T>& answer, const char* call) {
    return IsGood(answer.status(), call);
  }
  // A post that is refused changes nothing: it goes the second time.
  template <typename Post>
  Op Posted(Side& side, const char* call, Post post) {
    absl::StatusOr<OpId> posted = post();
    if (KindOf(posted.status()) == ErrorKind::kMemory) posted = post();
    const Spared spared;
    if (!posted.ok()) {
      // The connection has ended for want of memory, of this side or of the other one.
      const ErrorKind kind = KindOf(posted.status());
      EXPECT_TRUE(ended_ > 0 || kind == ErrorKind::kMemory || kind == ErrorKind::kFabric ||
                  kind == ErrorKind::kPeerReset)
          << call << ": " << posted.status();
      ++ended_;
      return {};
    }
    side.ends.try_emplace(*posted, 0);
    return {&side, *posted};
  }

  bool Open(Side& side, const char* call) {
    auto context = Context::Open({.fabric = "qpip", .progress = progress_});
    if (!IsGood(context, call)) return false;
    side.context = *std::move(context);
    auto queue = side.context.CreateQueue({});
    if (!IsGood(queue, "CreateQueue")) return false;
    side.queue = *std::move(queue);
    auto region = side.context.Allocate(kLarge);
    if (!IsGood(region, "Allocate")) return false;
    side.region = *std::move(region);
    return true;
  }
  bool Join() {
    auto listener = server_.context.CreateSocket(Family::kIpv4);
    if (!IsGood(listener, "CreateSocket")) return false;
    listener_ = *std::move(listener);
    if (!IsGood(listener_.Bind(Address::Loopback(Family::kIpv4, 0)), "Bind")) return false;
    if (!IsGood(listener_.Listen(4), "Listen")) return false;
    auto socket = client_.context.CreateSocket(Family::kIpv4);
    if (!IsGood(socket, "CreateSocket")) return false;
    client_.socket = *std::move(socket);
    const OpArgs mine{client_.queue};
    const OpArgs theirs{server_.queue, 0, server_.context.Now() + absl::Seconds(30)};
    const Op accept = Posted(server_, "Accept", [&] { return listener_.Accept(1, theirs); });
    const Op connect =
        Posted(client_, "Connect", [&] { return client_.socket.Connect(listener_.local(), mine); });
    if (accept.side == nullptr || connect.side == nullptr) return false;
    Await(connect);
    // A connection that is not announced for want of memory is reset, and its client hears of it.
    const Op word = Posted(client_, "Recv", [&] {
      return client_.socket.RecvCopy(absl::MakeSpan(word_), RecvFlags::kNone, mine);
    });
    Await(accept);
    if (word.side != nullptr) (void)client_.socket.Cancel(word.id);
    Await(word);
    if (accepted_ == SocketId::kNone) return false;
    auto taken = server_.context.TakeAccepted(accepted_);
    if (!IsGood(taken, "TakeAccepted")) taken = server_.context.TakeAccepted(accepted_);
    if (taken.ok()) server_.socket = *std::move(taken);
    return taken.ok() && ended_ == 0;
  }
  void Exchange() {
    const OpArgs mine{client_.queue};
    const OpArgs theirs{server_.queue};
    std::array<std::byte, 1000> out{}, in{};
    const auto send = [&](size_t length, Path path) {
      OpArgs args = mine;
      args.path = path;
      args.deadline = client_.context.Now() + absl::Seconds(5);
      const auto slice = client_.region.slice(0, length);
      if (!IsGood(slice, "slice")) return Op{};
      return Posted(client_, "Send",
                    [&] { return client_.socket.Send(*slice, SendFlags::kNone, args); });
    };
    const Op large = Posted(server_, "Recv", [&] {
      return server_.socket.Recv(server_.region.slice(), RecvFlags::kWaitAll, theirs);
    });
    Await(send(kLarge, Path::kZeroCopy));
    Await(large);
    const Op copied = Posted(server_, "RecvCopy", [&] {
      return server_.socket.RecvCopy(absl::MakeSpan(in), RecvFlags::kWaitAll, theirs);
    });
    Await(Posted(client_, "SendCopy",
                 [&] { return client_.socket.SendCopy(out, SendFlags::kNone, mine); }));
    Await(copied);
    const Op never = Posted(client_, "Recv", [&] {
      return client_.socket.RecvCopy(absl::MakeSpan(in), RecvFlags::kNone, mine);
    });
    if (never.side != nullptr) (void)client_.socket.Cancel(never.id);
    Await(never);
    (void)client_.socket.GetOption(OptionName::kLinger);
    (void)IsGood(client_.socket.SetOption({OptionName::kZcopySendMin, uint64_t{1000}}),
                 "SetOption");
    const Op last = Posted(server_, "Recv", [&] {
      return server_.socket.Recv(server_.region.slice(), RecvFlags::kNone, theirs);
    });
    Await(send(100'000, Path::kByThreshold));
    Await(last);
    Await(Posted(client_, "Shutdown", [&] { return client_.socket.Shutdown(mine); }));
  }
  void Close() {
    closing_ = true;
    for (Side* side : {&client_, &server_}) {
      if (!side->socket.valid()) continue;
      (void)Posted(*side, "Close",
                   [&] { return side->socket.Close(CloseMode::kAbort, {side->queue}); });
    }
    listener_ = Socket();
    client_.socket = Socket();
    server_.socket = Socket();
    for (Side* side : {&client_, &server_}) {
      const Spared spared;
      for (const auto& [op, ends] : side->ends) Await({side, op});
      for (const auto& [op, ends] : side->ends) EXPECT_EQ(ends, 1);
    }
    for (Side* side : {&client_, &server_}) {
      EXPECT_EQ(side->context.Stats().operations, 0u);
      side->region = Region();
      side->queue = EventQueue();
      side->context = Context();
    }
  }

  // Moves both sides, and takes what there is; how many events told of an end by error.
  int Collect() {
    int errors = 0;
    for (Side* side : {&client_, &server_}) {
      std::array<Event, 16> events;
      const auto taken = side->queue.TryDequeue(absl::MakeSpan(events));
      const Spared spared;
      for (size_t i = 0; i < taken.value_or(0); ++i) {
        const Event& event = events[i];
        if (event.terminal()) ++side->ends[event.op];
        if (event.accepted != SocketId::kNone) accepted_ = event.accepted;
        EXPECT_NE(event.kind, ErrorKind::kDeadlineExceeded) << ToString(event.type);
        if (!event.ok() && event.kind != ErrorKind::kCancelled) ++errors;
      }
    }
    ended_ += errors;
    return errors;
  }
  void Await(Op op) {
    if (op.side == nullptr || (ended_ > 0 && !closing_)) return;
    const absl::Time bound = absl::Now() + absl::Seconds(20);
    const auto ended = [&] {
      const Spared spared;
      return op.side->ends[op.id] > 0;
    };
    while (!ended() && (ended_ == 0 || closing_)) {
      Collect();
      ASSERT_LT(absl::Now(), bound)
          << "an operation of the " << (op.side == &client_ ? "client" : "server") << " never ends";
    }
  }

  const Progress progress_;
  Side client_, server_;
  Socket listener_;
  SocketId accepted_ = SocketId::kNone;
  std::array<std::byte, 1> word_{};
  int ended_ = 0;  // operations, for want of memory: then the course goes to its end
  bool closing_ = false;
};

class NoMemoryTest : public ::testing::TestWithParam<Progress> {};
INSTANTIATE_TEST_SUITE_P(On, NoMemoryTest, ::testing::Values(Progress::kManual, Progress::kThread),
                         [](const auto& info) {
                           return info.param == Progress::kManual ? "Manual" : "Thread";
                         });

TEST_P(NoMemoryTest, WhicheverAllocationFailsEveryOperationEndsAndEverythingCloses) {
  { Course(GetParam()).Run(); }  // what is made once for the whole program
  (void)backtrace(g_callers.data(), 1);
  int64_t failing = 0;
  for (bool hit = true; hit && !HasFailure(); ++failing) {
    SCOPED_TRACE("allocation " + std::to_string(failing));
    g_has_failed = false;
    {
      Course course(GetParam());
      g_left = failing;
      course.Run();
      g_left = -1;
    }
    hit = g_has_failed;
  }
  if (HasFailure()) backtrace_symbols_fd(g_callers.data(), g_depth, STDERR_FILENO);
  EXPECT_GT(failing, 100);
  RecordProperty("allocations", static_cast<int>(failing));
}

}  // namespace
}  // namespace esdp::contract
