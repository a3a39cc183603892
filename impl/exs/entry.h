#ifndef ESDP_IMPL_EXS_ENTRY_H_
#define ESDP_IMPL_EXS_ENTRY_H_

#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include "impl/exs/library.h"
#include "impl/exs/plain.h"
#include "sys/exs.h"

// The way of every call from C into the library and back.

namespace esdp::exs {

// What a call answers: its value, or -1 with an errno.
struct Answer {
  int value = 0;
  int error = 0;
};
inline Answer Value(int value) { return {value, 0}; }
inline Answer Failed(int error) { return error == 0 ? Answer{} : Answer{-1, error}; }

// Calls it with the open library. errno is set last, and not at all without an error.
template <typename Call>
int Enter(Call&& call) noexcept {
  const int before = errno;
  Library* library = Library::Current();
  Answer answer = Failed(library == nullptr ? Library::WhyNot() : 0);
  try {
    if (library != nullptr) answer = call(*library);
  } catch (const std::bad_alloc&) {
    answer = Failed(ENOBUFS);
  }
  errno = answer.error != 0 ? answer.error : before;
  return answer.value;
}

// The same for calls on a socket. With kTakes one that the program made with socket(2), and that is
// not connected, becomes one of this library's. For other TCP sockets `system()` answers.
enum class Plain : uint8_t { kRefuses, kTakes };

template <typename Call, typename System>
int EnterSocket(int fd, Call&& call, Plain plain, System&& system) noexcept {
  return Enter([&](Library& library) {
    std::shared_ptr<ExsSocket> socket;
    int error = library.numbers().Find(fd, &socket);
    if (error == EOPNOTSUPP && plain == Plain::kTakes) error = Adopt(library, fd, &socket);
    if (error == EOPNOTSUPP && PlainKindOf(fd) != PlainKind::kOther) {
      const int value = system();
      return value < 0 ? Failed(errno) : Value(value);
    }
    return error != 0 ? Failed(error) : call(library, *socket);
  });
}

// Where an operation is posted, and what its event tells.
struct Posting {
  int fd;
  exs_qhandle_t queue;
  int type;
  exs_ahandle_t handle;
};

// `call(queue, operation)` fills the operation and posts it, unless it answers with an error. `slots`
// are reserved for its events.
template <typename Call>
Answer PostTo(Library& library, const Posting& posting, int slots, Call&& call) {
  std::shared_ptr<Queue> queue;
  if (const int error = library.numbers().Find(posting.queue, &queue); error != 0) {
    return Failed(error);
  }
  if (slots > queue->depth()) return Failed(EINVAL);
  if (!queue->Reserve(slots)) return Failed(EAGAIN);
  int error = ENOBUFS;
  try {
    Operation filled;
    filled.type = posting.type;
    filled.handle = posting.handle;
    error = call(*queue, filled);
  } catch (const std::bad_alloc&) {
    error = ENOBUFS;
  }
  if (error != 0) queue->Release(slots);
  return Failed(error);
}

// The same on a socket: `call(library, socket, queue, operation)`.
template <typename Call>
Answer PostOn(Library& library, ExsSocket& socket, const Posting& posting, int slots, Call&& call) {
  return PostTo(library, posting, slots, [&](Queue& queue, Operation& filled) {
    return call(library, socket, queue, filled);
  });
}

// The same for posts. `plain(library, stream, queue, operation)` is for a TCP socket of the program
// that is connected.
template <typename Call, typename PlainCall>
int EnterPost(const Posting& posting, int slots, Call&& call, PlainCall&& plain) noexcept {
  return Enter([&](Library& library) {
    std::shared_ptr<ExsSocket> socket;
    const int error = library.numbers().Find(posting.fd, &socket);
    if (error == 0) return PostOn(library, *socket, posting, slots, call);
    if (error != EOPNOTSUPP) return Failed(error);
    const std::shared_ptr<PlainStream> stream = library.streams().FindOrMake(library, posting.fd);
    if (stream == nullptr) return Failed(WhyNoPost(posting.fd, posting.type, errno));
    return PostTo(library, posting, slots, [&](Queue& queue, Operation& filled) {
      filled.number = posting.fd;
      return plain(library, *stream, queue, filled);
    });
  });
}

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_ENTRY_H_
