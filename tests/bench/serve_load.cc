// Asks esdp_serve for one and the same file, over and over, on many connections.
//
//   serve_load ADDRESS FILE CONNECTIONS SECONDS [SLOW]
//
// Each connection asks again when it has got all; nothing is written. SLOW: one more connection,
// which takes so many bytes a second. Prints what came within the time, which is longer where one has
// got nothing by then:
// {"seconds", "files_per_second", "bytes_per_second", "each" (bytes a second of each connection, the
// slow one last), "first_us" and "last_us" ({"p50", "p99"} from the request to the first and to the
// last byte)}.

#include <esdp_files.pb.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "esdp/context.h"
#include "samples/arguments.h"
#include "tools/esdp_files/chunks.h"
#include "tools/esdp_files/frame.h"
#include "tools/esdp_perf/histogram.h"

namespace {

using samples::Check;
using samples::Value;
using Clock = std::chrono::steady_clock;
namespace wire = esdp_files::wire;
using esdp_files::kChunkBytes;
using esdp_files::kTailBytes;

constexpr uint64_t kPatience = 1'000'000;  // nanoseconds
constexpr uint64_t kAhead = 4;             // chunks
constexpr uint64_t kRoom = kChunkBytes + kTailBytes;
constexpr uint64_t kWithAnswer = 64 * 1024;  // such a file comes with its answer
constexpr size_t kBufferBytes = kWithAnswer + 1024;

uint64_t Since(Clock::time_point begun) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begun).count());
}

[[noreturn]] void Die(const char* why) {
  std::fprintf(stderr, "serve_load: %s\n", why);
  std::exit(1);
}

// What all connections share.
struct Load {
  esdp::Context context;
  esdp::EventQueue queue;
  std::string hello, get;
  esdp_perf::Histogram first, last;
  uint64_t files = 0;
  bool goes_on = true;
};

class Getter {
 public:
  enum Kind : uint64_t { kSent, kBuffer, kChunk, kKinds };

  Getter(Load& load, uint64_t number, const esdp::Address& server, uint64_t slow)
      : load_(load), number_(number), slow_(slow), buffer_(kBufferBytes) {
    socket_ = Value(load.context.CreateSocket(server.family()));
    Value(socket_.Connect(server, Args(kSent)));
  }

  uint64_t bytes() const { return bytes_; }
  void Start() {
    begun_ = Clock::now();
    Say(load_.hello);
    Receive();
  }

  void OnEvent(const esdp::Event& event) {
    if (!event.ok()) Check(event.status());
    const auto kind = static_cast<Kind>(event.cookie % kKinds);
    if (kind == kSent) return;
    if (event.eof()) Die("the server has ended a connection");
    if (kind == kChunk) return OnChunk();
    reader_.Add(std::span(buffer_).first(event.bytes));
    OnBytes();
  }

  // When a slow one is to take more.
  absl::Duration Wait() const {
    if (slow_ == 0 || waiting_ == 0) return absl::InfiniteDuration();
    const double due = static_cast<double>(bytes_) / static_cast<double>(slow_);
    return absl::Seconds(due) - absl::Nanoseconds(static_cast<int64_t>(Since(begun_)));
  }
  void Advance() {
    while (waiting_ > 0 && posted_ < (slow_ == 0 ? kAhead : 1) &&
           (slow_ == 0 || Wait() <= absl::ZeroDuration())) {
      PostChunk();
    }
  }

 private:
  esdp::OpArgs Args(Kind kind) { return {.queue = load_.queue, .cookie = number_ * kKinds + kind}; }
  void Say(const std::string& frame) {
    Value(socket_.SendCopy(
        absl::MakeConstSpan(reinterpret_cast<const std::byte*>(frame.data()), frame.size()),
        esdp::SendFlags::kNone, Args(kSent)));
  }
  void Receive() {
    Value(socket_.RecvCopy(absl::MakeSpan(buffer_), esdp::RecvFlags::kNone, Args(kBuffer)));
  }

  // An answer, or bytes of a file that comes with it.
  void OnBytes() {
    if (length_ == 0 && !TakeAnswer()) return Receive();
    if (length_ <= kWithAnswer) {
      if (reader_.left() < length_ + kTailBytes) return Receive();
      reader_.TakeRaw(length_);
      const std::string_view tail = reader_.TakeRaw(kTailBytes);
      CheckTail(std::as_bytes(std::span(tail)).first<kTailBytes>(), 0);
      bytes_ += length_;
      return Finish();
    }
    here_ = reader_.left();
    reader_.TakeRaw(here_);
    waiting_ = (length_ + kChunkBytes - 1) / kChunkBytes;
    next_ = taken_ = 0;
    Advance();
  }

  bool TakeAnswer() {
    const auto frame = reader_.Next();
    if (!frame) return false;
    wire::Answer answer;
    if (!answer.ParseFromArray(frame->data(), static_cast<int>(frame->size()))) Die("no answer");
    if (answer.status() != wire::OK) Die(answer.text().c_str());
    if (!greeted_) {
      greeted_ = true;
      Ask();
      return false;
    }
    if (answer.length() == 0) Die("an empty file");
    load_.first.Record(Since(asked_));
    length_ = answer.length();
    return true;
  }

  void Ask() {
    length_ = 0;
    asked_ = Clock::now();
    Say(load_.get);
  }

  uint64_t LengthOf(uint64_t chunk) const {
    return std::min(kChunkBytes, length_ - chunk * kChunkBytes);
  }
  void PostChunk() {
    if (!memory_.valid()) memory_ = Value(load_.context.Allocate(kAhead * kRoom));
    const uint64_t at = next_ % kAhead * kRoom + here_;
    const uint64_t wanted = LengthOf(next_) + kTailBytes - here_;
    Value(socket_.Recv(Value(memory_.slice(at, wanted)), esdp::RecvFlags::kWaitAll, Args(kChunk)));
    here_ = 0;
    ++next_;
    ++posted_;
    --waiting_;
  }

  void OnChunk() {
    --posted_;
    const uint64_t length = LengthOf(taken_);
    const std::byte* const tail = memory_.info().base + taken_ % kAhead * kRoom + length;
    CheckTail(std::span<const std::byte, kTailBytes>(tail, kTailBytes), taken_ * kChunkBytes);
    if (load_.goes_on) bytes_ += length;
    ++taken_;
    if (waiting_ == 0 && posted_ == 0) return Finish();
    Advance();
  }

  static void CheckTail(std::span<const std::byte, kTailBytes> bytes, uint64_t offset) {
    const esdp_files::Tail tail = esdp_files::LoadTail(bytes);
    if (tail.status != 0 || tail.offset != offset) Die("a chunk is not what it is to be");
  }

  void Finish() {
    if (!load_.goes_on) return;
    load_.last.Record(Since(asked_));
    ++load_.files;
    Ask();
    Receive();
  }

  Load& load_;
  uint64_t number_, slow_;
  esdp::Socket socket_;
  std::vector<std::byte> buffer_;
  esdp_files::FrameReader reader_;
  esdp::Region memory_;
  Clock::time_point begun_, asked_;
  bool greeted_ = false;
  uint64_t length_ = 0;  // of the file that comes
  uint64_t here_ = 0;    // of its first chunk, that came with the answer
  uint64_t waiting_ = 0, posted_ = 0, next_ = 0, taken_ = 0;  // chunks
  uint64_t bytes_ = 0;
};

std::string Frame(wire::Request request) {
  request.set_id(1);
  return esdp_files::ToFrame(request);
}

void PrintTimes(const char* name, const esdp_perf::Histogram& times) {
  const auto us = [&](double share) { return static_cast<double>(times.Percentile(share)) / 1e3; };
  std::printf(", \"%s\": {\"p50\": %.1f, \"p99\": %.1f}", name, us(0.5), us(0.99));
}

void TakeEvents(Load& load, std::vector<std::unique_ptr<Getter>>& getters,
                absl::Duration patience) {
  for (const auto& getter : getters) {
    patience = std::min(patience, getter->Wait());
    getter->Advance();
  }
  std::array<esdp::Event, 64> events;
  const auto count =
      load.queue.Dequeue(absl::MakeSpan(events), {.deadline = load.context.Now() + patience});
  if (!count.ok() && !absl::IsDeadlineExceeded(count.status())) Check(count.status());
  for (size_t i = 0; count.ok() && i < *count; ++i) {
    getters[events[i].cookie / Getter::kKinds]->OnEvent(events[i]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5 && argc != 6) Die("serve_load ADDRESS FILE CONNECTIONS SECONDS [SLOW]");
  const esdp::Address server = Value(esdp::Address::Parse(argv[1]));
  const uint64_t slow = argc == 6 ? std::strtoull(argv[5], nullptr, 10) : 0;
  const uint64_t count = std::strtoull(argv[3], nullptr, 10) + (slow > 0 ? 1 : 0);
  const double wanted = std::strtod(argv[4], nullptr);

  Load load;
  load.context = Value(esdp::Context::Open({.fabric = "qpip"}));
  load.queue = Value(load.context.CreateQueue({.depth = static_cast<uint32_t>(count * 16)}));
  wire::Request hello, get;
  hello.mutable_hello()->set_version(1);
  get.mutable_get()->set_name(argv[2]);
  load.hello = Frame(hello);
  load.get = Frame(get);
  std::vector<std::unique_ptr<Getter>> getters;
  for (uint64_t i = 0; i < count; ++i) {
    getters.push_back(std::make_unique<Getter>(load, i, server, i + 1 == count ? slow : 0));
    esdp::Event event;
    Value(load.queue.Dequeue(absl::MakeSpan(&event, 1)));
    if (!event.ok()) Check(event.status());
  }
  const Clock::time_point begun = Clock::now();
  for (const auto& getter : getters) getter->Start();
  const auto length = static_cast<uint64_t>(wanted * 1e9);
  const auto has_nothing = [](const auto& getter) { return getter->bytes() == 0; };
  while (Since(begun) < length || std::any_of(getters.begin(), getters.end(), has_nothing)) {
    const uint64_t rest = length - std::min(length, Since(begun));
    TakeEvents(load, getters, absl::Nanoseconds(static_cast<int64_t>(std::max(rest, kPatience))));
  }
  const double seconds = static_cast<double>(Since(begun)) / 1e9;
  uint64_t bytes = 0;
  std::string each;
  for (const auto& getter : getters) {
    bytes += getter->bytes();
    each +=
        (each.empty() ? "" : ", ") + std::to_string(static_cast<double>(getter->bytes()) / seconds);
  }
  std::printf(
      "{\"seconds\": %.3f, \"files_per_second\": %.1f, \"bytes_per_second\": %.0f, \"bytes\": "
      "%" PRIu64 ", \"each\": [%s]",
      seconds, static_cast<double>(load.files) / seconds, static_cast<double>(bytes) / seconds,
      bytes, each.c_str());
  PrintTimes("first_us", load.first);
  PrintTimes("last_us", load.last);
  std::printf("}\n");
  // What has been asked for last still comes into the getters' memory.
  load.context.Close(load.context.Now()).IgnoreError();
}
