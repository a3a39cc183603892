#include "tests/sockets/harness.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>
#include <utility>

#include "tests/base/content.h"
#include "tests/base/sanitized.h"

namespace esdp::contract {
namespace {

using Steady = std::chrono::steady_clock;

std::chrono::nanoseconds AsChrono(absl::Duration duration) {
  return absl::ToChronoNanoseconds(duration);
}

bool IsVerbs(World world) { return world == World::kVerbsThread || world == World::kVerbsManual; }

struct NamedDevice {
  std::string name;
  std::string address;
};

const NamedDevice& Device() {
  static const NamedDevice device = [] {
    const char* const hosts = std::getenv("ESDP_VERBS_HOSTS");
    const std::string first = hosts == nullptr ? "" : std::string(hosts, strcspn(hosts, " "));
    const size_t equals = first.find('=');
    if (equals == std::string::npos) return NamedDevice{};
    return NamedDevice{first.substr(0, equals), first.substr(equals + 1)};
  }();
  return device;
}

}  // namespace

std::string NameOf(World world) {
  switch (world) {
    case World::kQpipThread:
      return "QpipThread";
    case World::kQpipManual:
      return "QpipManual";
    case World::kLocalThread:
      return "LocalThread";
    case World::kLocalManual:
      return "LocalManual";
    case World::kSim:
      return "Sim";
    case World::kVerbsThread:
      return "VerbsThread";
    case World::kVerbsManual:
      return "VerbsManual";
  }
  return "";
}

std::vector<World> Worlds() {
  std::vector<World> worlds = WorldsInRealTime();
  if (Device().name.empty()) worlds.push_back(World::kSim);
  return worlds;
}

std::vector<World> WorldsInRealTime() {
  if (!Device().name.empty()) return {World::kVerbsThread, World::kVerbsManual};
  std::vector<World> worlds = {World::kQpipThread, World::kQpipManual, World::kLocalThread};
  // Its code by hand is that with a thread: a sanitizer would see nothing more.
  if (!kSanitized) worlds.push_back(World::kLocalManual);
  return worlds;
}

std::vector<World> WorldsOverTcp() {
  std::vector<World> worlds = WorldsInRealTime();
  std::erase_if(worlds, [](World world) { return TransportOf(world) == Transport::kLocal; });
  return worlds;
}

std::vector<World> WorldsByHand() {
  std::vector<World> worlds = Worlds();
  std::erase_if(worlds, HasThread);
  return worlds;
}

std::vector<World> WorldsWithThread() {
  if (!Device().name.empty()) return {World::kVerbsThread};
  return {World::kQpipThread, World::kLocalThread};
}

Transport TransportOf(World world) {
  if (world == World::kSim) return Transport::kSim;
  if (IsVerbs(world)) return Transport::kVerbs;
  const bool local = world == World::kLocalThread || world == World::kLocalManual;
  return local ? Transport::kLocal : Transport::kQpip;
}

Address HostOf(World world, uint16_t port) {
  if (!IsVerbs(world)) return Address::Loopback(Family::kIpv4, port);
  return Address::Parse(Device().address + ":" + std::to_string(port)).value_or(Address());
}

ContextOptions OptionsOf(World world, Context* of) {
  ContextOptions options;
  options.fabric = IsVerbs(world) ? "verbs:" + Device().name : ToString(TransportOf(world));
  options.progress = HasThread(world) ? Progress::kThread : Progress::kManual;
  if (world == World::kSim) options.world_of = of;
  options.peer_moves = PeerMoves::kUnguarded;  // raw peers know no token
  options.moves_max = 1'000;
  return options;
}

uint64_t NewSeed() { return std::random_device{}(); }

// --- Side ----------------------------------------------------------------------------------------

void Side::Open(const ContextOptions& options, uint32_t depth) {
  absl::StatusOr<Context> opened = Context::Open(options);
  ASSERT_TRUE(opened.ok()) << opened.status();
  context = *std::move(opened);
  absl::StatusOr<EventQueue> created = context.CreateQueue({.depth = depth});
  ASSERT_TRUE(created.ok()) << created.status();
  queue = *std::move(created);
}

OpId Side::Accepted(absl::StatusOr<OpId> posted) {
  EXPECT_TRUE(posted.ok()) << posted.status();
  if (!posted.ok()) return OpId::kNone;
  EXPECT_NE(*posted, OpId::kNone);
  EXPECT_TRUE(terminals_.emplace(*posted, 0).second) << "the OpId of an earlier operation";
  return *posted;
}

void Side::Note(const Event& event) {
  const auto found = terminals_.find(event.op);
  if (found == terminals_.end()) {
    ADD_FAILURE() << "an event " << ToString(event.type) << " of an operation never accepted";
    return;
  }
  EXPECT_EQ(found->second, 0) << ToString(event.type) << ": an event after the terminal one";
  EXPECT_NE(event.terminal(), (event.flags & kMore) != 0) << "either the last or more";
  if (event.terminal()) ++found->second;
  EXPECT_EQ(event.ok(), event.kind == ErrorKind::kNone);
  EXPECT_EQ(event.code, event.status().code());
  if (!event.ok()) {
    EXPECT_EQ(event.kind, KindOf(event.status()));
    EXPECT_FALSE(event.status().message().empty());
  }
}

void Side::Collect() {
  std::array<Event, 64> some;
  for (;;) {
    const absl::StatusOr<size_t> taken = queue.TryDequeue(absl::MakeSpan(some));
    if (!taken.ok()) return;  // the test has ended the queue
    for (size_t i = 0; i < *taken; ++i) {
      Note(some[i]);
      events.push_back(some[i]);
    }
    if (*taken < some.size()) return;
  }
}

const Event* Side::Find(OpId op) const {
  for (const Event& event : events) {
    if (event.op == op && event.terminal()) return &event;
  }
  return nullptr;
}

size_t Side::Outstanding() const {
  return static_cast<size_t>(std::count_if(terminals_.begin(), terminals_.end(),
                                           [](const auto& entry) { return entry.second == 0; }));
}

void Side::ExpectAllEnded() const {
  EXPECT_EQ(Outstanding(), 0u) << "accepted operations without a terminal event";
}

// --- Memory --------------------------------------------------------------------------------------

Memory::Memory(Context& context, size_t size, const RegisterOptions& options) : bytes(size) {
  absl::StatusOr<Region> registered = context.Register(absl::MakeSpan(bytes), options);
  EXPECT_TRUE(registered.ok()) << registered.status();
  if (registered.ok()) region = *std::move(registered);
}

Slice Memory::At(uint64_t offset, uint64_t length) const {
  const absl::StatusOr<Slice> slice = region.slice(offset, length);
  EXPECT_TRUE(slice.ok()) << slice.status();
  return slice.value_or(Slice());
}

void Memory::Fill(uint64_t seed) { FillByChance(seed, bytes); }

::testing::AssertionResult SameBytes(absl::Span<const std::byte> one,
                                     absl::Span<const std::byte> two) {
  if (one.size() != two.size()) {
    return ::testing::AssertionFailure() << one.size() << " bytes and " << two.size();
  }
  if (AreSame(one, two)) return ::testing::AssertionSuccess();
  const auto differ = std::mismatch(one.begin(), one.end(), two.begin());
  // Where the wrong bytes came from says what went wrong.
  const auto from = differ.first - one.begin();
  auto to = static_cast<ptrdiff_t>(one.size());
  while (one[static_cast<size_t>(to - 1)] == two[static_cast<size_t>(to - 1)]) --to;
  const auto wrong = two.subspan(static_cast<size_t>(from),
                                 static_cast<size_t>(std::min<ptrdiff_t>(to - from, 16)));
  const auto found = std::search(one.begin(), one.end(), wrong.begin(), wrong.end());
  const bool elsewhere = found != one.end();
  return ::testing::AssertionFailure() << "they differ from byte " << from << " to " << to
                                       << (elsewhere ? ", with the bytes from " : "")
                                       << (elsewhere ? std::to_string(found - one.begin()) : "")
                                       << ", the first of them " << static_cast<int>(wrong[0]);
}

::testing::AssertionResult Refuses(const absl::Status& status, ErrorKind kind,
                                   absl::StatusCode code) {
  const std::string text(status.message().data(), status.message().size());
  if (KindOf(status) != kind || status.code() != code) {
    return ::testing::AssertionFailure() << "kind \"" << ToString(KindOf(status)) << "\", not \""
                                         << ToString(kind) << "\"; " << status;
  }
  if (text.size() < 10 || text.find(' ') == std::string::npos) {
    return ::testing::AssertionFailure() << "the text \"" << text << "\" does not help";
  }
  if (DetailOf(status).sys_errno == 0) return ::testing::AssertionFailure() << "no errno";
  return ::testing::AssertionSuccess() << status;
}

// --- PairTest ------------------------------------------------------------------------------------

void PairTest::SetUp() {
  ASSERT_NO_FATAL_FAILURE(server_.Open(OptionsOf(world()), depth_));
  ASSERT_NO_FATAL_FAILURE(client_.Open(OptionsOf(world(), &server_.context), depth_));
}

void PairTest::TearDown() {
  client_.socket = {};
  server_.socket = {};
  listener_ = {};
  EXPECT_TRUE(Pump([&] { return client_.Outstanding() + server_.Outstanding() == 0; }));
  Settle();
  for (Side* side : {&client_, &server_}) {
    side->ExpectAllEnded();
    const QueueStats stats = side->queue.Stats();
    EXPECT_EQ(stats.reserved, 0u) << "slots stay reserved when all operations have ended";
    EXPECT_EQ(stats.waiting, 0u);
  }
  // A device may take a while to flush what a socket that is gone has left.
  EXPECT_TRUE(Pump([this] {
    return std::ranges::all_of(
        memories_, [](const auto& each) { return each->region.info().operations == 0; });
  })) << "a region stays in use";
  for (const auto& memory : memories_) (void)memory->region.Close();
}

Address PairTest::Listen(const SocketOptions& options, int backlog) {
  absl::StatusOr<Socket> created =
      server_.context.CreateSocket(Family::kIpv4, SocketType::kStream, options);
  EXPECT_TRUE(created.ok()) << created.status();
  if (!created.ok()) return {};
  listener_ = *std::move(created);
  const absl::Status bound = listener_.Bind(HostOf(world(), 0));
  EXPECT_TRUE(bound.ok()) << bound;
  const absl::Status listens = listener_.Listen(backlog);
  EXPECT_TRUE(listens.ok()) << listens;
  return listener_.local();
}

void PairTest::ConnectTo(const Address& address, const SocketOptions& options) {
  absl::StatusOr<Socket> created =
      client_.context.CreateSocket(Family::kIpv4, SocketType::kStream, options);
  ASSERT_TRUE(created.ok()) << created.status();
  client_.socket = *std::move(created);
  Join(address);
}

void PairTest::Join(const Address& address) {
  const OpId accept = server_.Accepted(listener_.Accept(1, server_.Args()));
  const OpId connect = client_.Accepted(client_.socket.Connect(address, client_.Args()));
  const Event accepted = End(server_, accept);
  ASSERT_TRUE(accepted.ok()) << accepted.status();
  absl::StatusOr<Socket> taken = server_.context.TakeAccepted(accepted.accepted);
  ASSERT_TRUE(taken.ok()) << taken.status();
  server_.socket = *std::move(taken);
  const Event connected = End(client_, connect);
  ASSERT_TRUE(connected.ok()) << connected.status();
}

void PairTest::Connect(const SocketOptions& client, const SocketOptions& server) {
  const Address address = Listen(server);
  ASSERT_NO_FATAL_FAILURE(ConnectTo(address, client));
}

Memory& PairTest::Make(Side& side, size_t size, const RegisterOptions& options) {
  memories_.push_back(std::make_unique<Memory>(side.context, size, options));
  return *memories_.back();
}

// Something that can happen happens; where nothing can, time passes: a little, then more.
void PairTest::Move(absl::Duration* quantum) {
  const size_t before = client_.events.size() + server_.events.size();
  client_.Collect();
  server_.Collect();
  if (client_.events.size() + server_.events.size() != before) {
    *quantum = absl::Microseconds(10);
    return;
  }
  *quantum = std::min(*quantum * 2, absl::Milliseconds(10));
  if (world() == World::kSim) {
    (void)server_.context.Progress(*quantum);
    (void)client_.context.Progress();
    return;
  }
  std::array<pollfd, 2> both = {pollfd{client_.queue.fd(), POLLIN, 0},
                                pollfd{server_.queue.fd(), POLLIN, 0}};
  (void)poll(both.data(), both.size(), static_cast<int>(absl::ToInt64Milliseconds(*quantum)));
}

bool PairTest::Pump(const std::function<bool()>& done, absl::Duration bound) {
  // Time in which this process stood still, as on a machine that was suspended, does not count.
  std::chrono::nanoseconds left = AsChrono(bound);
  Steady::time_point last = Steady::now();
  const absl::Time deadline = server_.context.Now() + bound * 10;  // virtual time is cheap
  absl::Duration quantum = absl::Microseconds(10);
  for (;;) {
    client_.Collect();
    server_.Collect();
    if (done()) return true;
    const Steady::time_point now = Steady::now();
    left -= std::min<std::chrono::nanoseconds>(now - last, std::chrono::seconds(1));
    last = now;
    if (left.count() < 0) return false;
    if (world() == World::kSim && server_.context.Now() > deadline) return false;
    Move(&quantum);
  }
}

void PairTest::Settle() {
  const absl::Time until = server_.context.Now() + absl::Milliseconds(50);
  const auto real_deadline = Steady::now() + std::chrono::seconds(5);
  (void)Pump([&] { return server_.context.Now() >= until || Steady::now() > real_deadline; });
}

Event PairTest::End(Side& side, OpId op) {
  const bool came = Pump([&] { return side.Find(op) != nullptr; });
  EXPECT_TRUE(came) << "no terminal event";
  if (!came) return {};
  const Event event = *side.Find(op);
  side.events.erase(std::find_if(side.events.begin(), side.events.end(),
                                 [&](const Event& one) { return one.op == op && one.terminal(); }));
  return event;
}

Event PairTest::Next(Side& side) {
  const bool came = Pump([&] { return !side.events.empty(); });
  EXPECT_TRUE(came) << "no event";
  if (!came) return {};
  const Event event = side.events.front();
  side.events.pop_front();
  return event;
}

void PairTest::EndWell(Side& side, OpId op, uint64_t bytes) {
  const Event event = End(side, op);
  EXPECT_TRUE(event.ok()) << event.status();
  EXPECT_EQ(event.bytes, bytes);
}

void PairTest::Carry(Side& source, Memory& from, Side& sink, Memory& to, uint64_t length,
                     Path path) {
  OpArgs receiving = sink.Args();
  OpArgs sending = source.Args();
  receiving.path = sending.path = path;
  const OpId receive = sink.Recv(to.At(0, length), RecvFlags::kWaitAll, receiving);
  const OpId send = source.Send(from.At(0, length), sending);
  EndWell(source, send, length);
  EndWell(sink, receive, length);
  EXPECT_TRUE(SameBytes(absl::MakeSpan(from.bytes).subspan(0, length),
                        absl::MakeSpan(to.bytes).subspan(0, length)));
}

std::vector<OpId> PairTest::FillUp(Side& side, Memory& from, size_t sends, Path path) {
  OpArgs args = side.Args();
  args.path = path;
  std::vector<OpId> posted;
  const uint64_t before = side.socket.Stats().bytes_sent_copied;
  for (size_t i = 0; i < sends; ++i) posted.push_back(side.Send(from.All(), args));
  // It stands still, and what has wholly gone has told so.
  EXPECT_TRUE(Pump([&] {
    const SocketStats stats = side.socket.Stats();
    const auto ended =
        std::ranges::count_if(posted, [&](OpId op) { return side.Find(op) != nullptr; });
    const uint64_t gone = (stats.bytes_sent_copied - before) / from.size();
    return stats.credit_stalls > 0 && static_cast<uint64_t>(ended) == gone;
  })) << "nothing holds the sender back";
  Settle();
  std::erase_if(posted, [&](OpId op) { return side.Find(op) != nullptr; });
  std::erase_if(side.events, [](const Event& event) { return event.type == EventType::kSend; });
  return posted;
}

}  // namespace esdp::contract
