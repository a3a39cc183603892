#ifndef ESDP_IMPL_EXS_SOCKET_H_
#define ESDP_IMPL_EXS_SOCKET_H_

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>

#include "absl/status/statusor.h"
#include "esdp/event.h"
#include "esdp/socket.h"
#include "impl/exs/operation.h"
#include "impl/exs/queue.h"

namespace esdp::exs {

// What a post does below; it may be done later.
using PostBelow = std::function<absl::StatusOr<OpId>(Socket&, const OpArgs&)>;

// An ExsSocket is a socket of api/esdp under a number of the process.
//
//   Owns:     the socket, and the descriptor that holds the number.
//   Threads:  any.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   an errno, 0 for none.
class ExsSocket : public std::enable_shared_from_this<ExsSocket> {
 public:
  // Null when no descriptor is left.
  static std::shared_ptr<ExsSocket> Make(Socket socket, int family);
  ~ExsSocket();
  ExsSocket(const ExsSocket&) = delete;
  ExsSocket& operator=(const ExsSocket&) = delete;

  int number() const { return number_; }
  int family() const { return family_; }
  // Whether the number is still that of the descriptor: close(2) leaves nobody a word.
  bool HoldsNumber() const;
  // The number is the process's again.
  void GiveUpNumber();

  // `filled` says what the event tells; its slot is reserved.
  int Post(Queue& queue, const Operation& filled, const PostBelow& post);
  // The same for the last operation of the socket.
  int PostLast(Queue& queue, const Operation& filled, const PostBelow& post);
  // Ends without an event; false when it is being closed.
  bool Abandon(CloseMode mode);
  // Asks those with that handle, or all, to end; how many.
  int Cancel(bool by_handle, exs_ahandle_t handle);
  // Takes it off the list; whether the socket is being closed.
  bool Remove(Operation& operation);

  bool listening() const;
  int Listen(int backlog);
  Socket& socket() { return socket_; }

 private:
  ExsSocket(Socket socket, int family, int number);
  void Add(Operation& operation);
  void Unlink(Operation& operation);
  int PostAs(bool last, Queue& queue, const Operation& filled, const PostBelow& post);

  const int family_;
  const int number_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  std::atomic<bool> given_up_{false};
  Socket socket_;

  mutable std::mutex mutex_;
  Operation* operations_ = nullptr;
  bool listening_ = false;
  bool closing_ = false;
};

// The event of an operation that has ended below, or of a connection that an accept has got.
exs_event_t Conclude(Queue& queue, Operation& operation, const Event& event) noexcept;

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_SOCKET_H_
