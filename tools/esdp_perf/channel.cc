#include "tools/esdp_perf/channel.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "absl/types/span.h"

namespace esdp_perf {

absl::StatusOr<std::unique_ptr<Channel>> Channel::Over(Station& station, esdp::Socket socket) {
  std::unique_ptr<Channel> channel(new Channel(station, std::move(socket)));
  auto region = station.context().Register(absl::MakeSpan(channel->memory_));
  if (!region.ok()) return region.status();
  channel->region_ = *std::move(region);
  return channel;
}

absl::Status Channel::Send(const Fields& fields) {
  const std::string body = fields.Encode();
  if (body.size() > kMessageMax - kHeadBytes) {
    return absl::InvalidArgumentError("a control message is too long");
  }
  char head[kHeadBytes + 1];
  std::snprintf(head, sizeof(head), "%08u", static_cast<unsigned>(body.size()));
  std::memcpy(memory_.data(), head, kHeadBytes);
  std::memcpy(&memory_[kHeadBytes], body.data(), body.size());

  auto slice = region_.slice(0, kHeadBytes + body.size());
  if (!slice.ok()) return slice.status();
  auto posted = socket_.Send(*slice, esdp::SendFlags::kNone, {station_.queue()});
  return posted.ok() ? station_.Await().status() : posted.status();
}

absl::Status Channel::ReceiveExactly(size_t length) {
  auto slice = region_.slice(0, length);
  if (!slice.ok()) return slice.status();
  auto posted = socket_.Recv(*slice, esdp::RecvFlags::kWaitAll, {station_.queue()});
  if (!posted.ok()) return posted.status();
  auto event = station_.Await();
  if (!event.ok()) return event.status();
  return event->bytes == length ? absl::OkStatus() : absl::UnavailableError("the peer has closed");
}

absl::StatusOr<Fields> Channel::Receive() {
  if (absl::Status status = ReceiveExactly(kHeadBytes); !status.ok()) return status;
  const auto* text = reinterpret_cast<const char*>(memory_.data());
  size_t length = 0;
  const auto [end, error] = std::from_chars(text, text + kHeadBytes, length);
  if (error != std::errc() || end != text + kHeadBytes || length > kMessageMax - kHeadBytes) {
    return absl::DataLossError("what arrived is no control message: is the peer esdp_perf?");
  }
  if (absl::Status status = ReceiveExactly(length); !status.ok()) return status;
  const auto fields = Fields::Decode(std::string_view(text, length));
  if (!fields.has_value()) return absl::DataLossError("a control message is no list of fields");
  if (fields->Has("error")) return absl::AbortedError("the peer says: " + fields->Text("error"));
  return *fields;
}

absl::Status Channel::Say(const char* word) {
  Fields fields;
  fields.Set(word, uint64_t{1});
  return Send(fields);
}

void Channel::SendError(const absl::Status& status) {
  Fields fields;
  std::string text = status.ToString();
  std::replace(text.begin(), text.end(), '\n', ' ');
  fields.Set("error", text);
  Send(fields).IgnoreError();  // the peer may be what failed
}

absl::Status Channel::Close() {
  auto posted = socket_.Close(esdp::CloseMode::kGraceful, {station_.queue()});
  return posted.ok() ? station_.Await().status() : posted.status();
}

}  // namespace esdp_perf
