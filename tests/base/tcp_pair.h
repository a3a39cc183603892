#ifndef ESDP_TESTS_BASE_TCP_PAIR_H_
#define ESDP_TESTS_BASE_TCP_PAIR_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "gtest/gtest.h"

namespace esdp {

// Two plain TCP sockets that are connected with each other over loopback: `connected` by a call of
// connect, `accepted` by one of accept. They are closed with it, unless a test takes them.
struct TcpPair {
  // With `mapped` the accepting one is of IPv6, and its peer's address one of IPv4 mapped to that.
  explicit TcpPair(bool mapped = false) {
    const int listener = socket(mapped ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_storage at{};
    socklen_t bytes = sizeof(at);
    if (mapped) {
      at.ss_family = AF_INET6;  // any address, any port
    } else {
      auto* in = reinterpret_cast<sockaddr_in*>(&at);
      in->sin_family = AF_INET;
      in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    }
    EXPECT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&at),
                   mapped ? sizeof(sockaddr_in6) : sizeof(sockaddr_in)),
              0);
    EXPECT_EQ(listen(listener, 1), 0);
    EXPECT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&at), &bytes), 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = mapped ? reinterpret_cast<sockaddr_in6*>(&at)->sin6_port
                         : reinterpret_cast<sockaddr_in*>(&at)->sin_port;
    port = ntohs(to.sin_port);
    connected = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(connect(connected, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
    accepted = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    EXPECT_GE(accepted, 0);
    close(listener);
  }
  ~TcpPair() {
    CloseConnected();
    CloseAccepted();
  }
  TcpPair(const TcpPair&) = delete;
  TcpPair& operator=(const TcpPair&) = delete;

  void CloseConnected() { Close(connected); }
  void CloseAccepted() { Close(accepted); }

  int connected = -1;
  int accepted = -1;
  uint16_t port = 0;  // where it was accepted

 private:
  static void Close(int& descriptor) {
    if (descriptor >= 0) close(std::exchange(descriptor, -1));
  }
};

}  // namespace esdp

#endif  // ESDP_TESTS_BASE_TCP_PAIR_H_
