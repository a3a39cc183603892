#ifndef ESDP_IMPL_EXS_FILE_SEND_H_
#define ESDP_IMPL_EXS_FILE_SEND_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "esdp/region.h"
#include "esdp/socket.h"
#include "impl/exs/file_part.h"
#include "impl/exs/library.h"

namespace esdp::exs {

// A FileSend carries out one exs_sendfile: it reads files into two pieces of registered memory, of
// which one is filled while the other is sent.
//
//   Owns:     its parts and pieces.
//   Threads:  Stop any; the rest is the helper's thread.
//   Blocks:   where reading a file does.
//   Units:    bytes.
//   Errors:   an errno in the result.
class FileSend : public std::enable_shared_from_this<FileSend> {
 public:
  // `error`, and the bytes that were sent.
  using Done = std::function<void(int error, uint64_t bytes)>;

  FileSend(Library& library, Socket& socket, std::vector<FilePart> parts, Done done);
  ~FileSend();
  FileSend(const FileSend&) = delete;
  FileSend& operator=(const FileSend&) = delete;

  // Asks whether the socket can send now; an errno if not. Any thread.
  int Begin();
  // Sends nothing more: it ends with ECANCELED unless all is on its way. With `abort` it takes the
  // connection down.
  void Stop(bool abort);

 private:
  struct Piece {
    Region region;
    bool busy = false;
  };

  void Step();
  bool SendNext();
  bool SendMemory(FilePart& part);
  bool SendFromFile(FilePart& part);
  bool Send(const Slice& slice, Piece* piece);
  Piece* FreePiece();
  void OnSent(const Event& event, Piece* piece);
  void Fail(int error);

  Library& library_;
  Socket& socket_;
  std::vector<FilePart> parts_;
  Done done_;
  size_t next_ = 0;  // the part under way
  std::array<Piece, 2> pieces_;
  int outstanding_ = 0;
  uint64_t sent_ = 0;
  int error_ = 0;

  std::mutex mutex_;
  bool stopped_ = false;
  bool aborted_ = false;      // Stop has to take down the connection
  std::vector<OpId> posted_;  // some have ended
};

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_FILE_SEND_H_
