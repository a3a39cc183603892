#ifndef ESDP_TESTS_FABRIC_LOCAL_REMOTE_MESSAGE_H_
#define ESDP_TESTS_FABRIC_LOCAL_REMOTE_MESSAGE_H_

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "impl/fabric/types.h"

// What a fabric in another process is asked, and what it answers.

namespace esdp::fabric {

enum class Call : uint8_t {
  kRegister,
  kDeregister,
  kRegionKey,
  kBind,
  kUnbind,
  kWritten,
  kCreate,
  kDestroy,
  kPostSend,
  kPostReceive,
  kRelease,
  kListen,
  kListenerAddress,
  kStop,
  kConnect,
  kAccept,
  kReject,
  kDisconnect,
  kPoll,
  kPollRendezvous,
  kExpectWaits,
  kHasUnpolled,
  kNextDeadline,
  kEnd,
};

// Values one behind the other. Both ends run the same program.
class Message {
 public:
  template <typename T>
  Message& Put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return PutBytes(&value, sizeof(value));
  }
  Message& Put(const std::string& text) {
    Put(text.size());
    return PutBytes(text.data(), text.size());
  }
  Message& Put(const absl::Status& status) {
    Put(status.code());
    return Put(std::string(status.message()));
  }
  template <typename T>
  Message& Put(absl::Span<const T> values) {
    Put(values.size());
    return PutBytes(values.data(), values.size() * sizeof(T));
  }
  template <typename T>
  T Get() {
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof(value));
    at_ += sizeof(value);
    return value;
  }
  std::string GetText() { return GetAll<char, std::string>(); }
  absl::Status GetStatus() {
    const auto code = Get<absl::StatusCode>();
    return {code, GetText()};
  }
  template <typename T, typename Container = std::vector<T>>
  Container GetAll() {
    Container values(Get<size_t>(), T{});
    if (!values.empty()) std::memcpy(values.data(), bytes_.data() + at_, values.size() * sizeof(T));
    at_ += values.size() * sizeof(T);
    return values;
  }

  bool Send(int socket) const {
    const size_t size = bytes_.size();
    return Write(socket, &size, sizeof(size)) && Write(socket, bytes_.data(), size);
  }
  bool Receive(int socket) {
    size_t size = 0;
    if (!Read(socket, &size, sizeof(size))) return false;
    bytes_.resize(size);
    at_ = 0;
    return Read(socket, bytes_.data(), size);
  }

 private:
  Message& PutBytes(const void* from, size_t size) {
    const auto* const first = static_cast<const std::byte*>(from);
    bytes_.insert(bytes_.end(), first, first + size);
    return *this;
  }
  static bool Write(int socket, const void* from, size_t size) {
    return size == 0 || send(socket, from, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
  }
  static bool Read(int socket, void* to, size_t size) {
    return size == 0 || recv(socket, to, size, MSG_WAITALL) == static_cast<ssize_t>(size);
  }

  std::vector<std::byte> bytes_;
  size_t at_ = 0;
};

template <typename T>
void PutAnswer(Message& answer, const absl::StatusOr<T>& value) {
  answer.Put(value.status());
  if (value.ok()) answer.Put(*value);
}

// The entries of all the work stand behind it.
template <typename Work>
void PutWork(Message& message, absl::Span<const Work> batch) {
  message.Put(batch);
  for (const Work& work : batch) message.Put(absl::MakeConstSpan(work.entries, work.entry_count));
}

template <typename Work>
std::vector<Work> GetWork(Message& message, std::vector<std::vector<ScatterEntry>>& entries) {
  auto batch = message.GetAll<Work>();
  entries.resize(batch.size());
  for (size_t i = 0; i < batch.size(); ++i) {
    entries[i] = message.GetAll<ScatterEntry>();
    batch[i].entries = entries[i].data();
  }
  return batch;
}

}  // namespace esdp::fabric

#endif  // ESDP_TESTS_FABRIC_LOCAL_REMOTE_MESSAGE_H_
