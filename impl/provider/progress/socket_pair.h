#ifndef ESDP_IMPL_PROVIDER_PROGRESS_SOCKET_PAIR_H_
#define ESDP_IMPL_PROVIDER_PROGRESS_SOCKET_PAIR_H_

namespace esdp::provider {

// A descriptor that shows to poll, select and epoll what it is told to: one end of a pair of UNIX
// sockets. Bytes are put into the pair and taken out of it so that the system says of that end what
// it would say of a TCP socket; who waits, level- or edge-triggered, waits in the system alone.
// Readable is a byte towards it, full a queue that nobody takes from; an urgent byte, the end of the
// stream and a reset are those of UNIX sockets.
//
//   Owns:     both ends; the shown one until Lend, both until Release.
//   Threads:  not thread-safe; fd() may be waited on by any thread.
//   Blocks:   never. Each change takes a system call or two.
//   Units:    –
//   Errors:   Open: false where the system has no descriptor, with errno as it left it.
class SocketPair {
 public:
  SocketPair() = default;
  ~SocketPair();
  SocketPair(const SocketPair&) = delete;
  SocketPair& operator=(const SocketPair&) = delete;

  [[nodiscard]] bool Open();
  // A pair that there is already, through which nothing is on its way.
  void Adopt(int shown, int hidden);
  // What was put in to show something is taken out, and both ends are the caller's as they were when
  // they were adopted. Neither of a pair that was opened, or that shows the peer's end.
  struct Ends {
    int shown = -1, hidden = -1;
  };
  Ends Release();
  int fd() const { return shown_end_; }
  // The shown end has this number now, and is the caller's to close: then the hidden one hangs up.
  void Lend(int number);
  int hidden_fd() const { return hidden_end_; }
  bool has_ended() const { return hidden_end_ < 0; }

  // At first it is writable, and nothing else. `arrived`: more may have come on top of what is
  // readable, so that who waits for an edge is given one. An urgent byte makes it readable, too.
  void ShowInput(bool readable, bool urgent, bool arrived);
  void ShowRoom(bool writable);
  // The peer writes no more. For good. `again`: that is one more edge.
  void ShowPeerEnd(bool again = false);
  // Both have ended, in order or by a reset. For good: nothing else changes afterwards.
  void ShowEnd(bool reset);

 private:
  static void Drain(int end, bool marked = false);
  void TakeUrgent();

  int shown_end_ = -1;
  bool lent_ = false;
  int hidden_end_ = -1;
  int bytes_ = 0;  // put in to show that it is readable
  bool urgent_ = false;
  bool full_ = false;
  bool peer_ended_ = false;
  int room_before_ = 0;  // of an adopted pair: SO_SNDBUF of the shown end
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_PROGRESS_SOCKET_PAIR_H_
