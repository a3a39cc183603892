#ifndef ESDP_IMPL_EXS_NUMBERS_H_
#define ESDP_IMPL_EXS_NUMBERS_H_

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "impl/exs/queue.h"
#include "impl/exs/socket.h"

namespace esdp::exs {

// Which numbers of the process are sockets and queues of this library.
//
//   Owns:     both, until they are closed.
//   Threads:  any.
//   Blocks:   never.
//   Units:    -
//   Errors:   an errno, 0 for none.
class Numbers {
 public:
  // EBADF for a number that is closed, ENOTSOCK for one of something else, EOPNOTSUPP for a socket
  // that is none of this library's.
  int Find(int number, std::shared_ptr<ExsSocket>* socket);
  int Find(exs_qhandle_t number, std::shared_ptr<Queue>* queue);
  // A number that comes anew was closed behind our back.
  void Add(std::shared_ptr<ExsSocket> socket);
  void Add(std::shared_ptr<Queue> queue);
  void RemoveSocket(int number, const ExsSocket* socket);
  void RemoveQueue(exs_qhandle_t number);
  // It was closed by close(2): it goes, at the latest with the last operation that names it.
  void LoseQueue(const std::shared_ptr<Queue>& queue);

  bool Has(int number);

  // Around fork.
  void Lock() { mutex_.lock(); }
  void Unlock() { mutex_.unlock(); }

 private:
  void LoseQueue(int number);

  std::mutex mutex_;
  std::unordered_map<int, std::shared_ptr<ExsSocket>> sockets_;
  std::unordered_map<int, std::shared_ptr<Queue>> queues_;
  // Closed by close(2), which their operations do not know.
  std::vector<std::shared_ptr<Queue>> lost_;
};

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_NUMBERS_H_
