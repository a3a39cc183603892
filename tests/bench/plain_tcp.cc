#include "tests/bench/plain_tcp.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace esdp_bench {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

void Fail(const char* what) {
  std::fprintf(stderr, "plain TCP: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

void PinTo(const char* cpu) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(static_cast<size_t>(std::atoi(cpu)), &cpus);
  if (sched_setaffinity(0, sizeof(cpus), &cpus) != 0) Fail("pin");
}

int AcceptOne() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = Loopback(0);
  socklen_t length = sizeof(address);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), length) != 0) Fail("bind");
  if (listen(listener, 1) != 0) Fail("listen");
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
  std::printf("port %d\n", ntohs(address.sin_port));
  std::fflush(stdout);
  const int fd = accept(listener, nullptr, nullptr);
  if (fd < 0) Fail("accept");
  return fd;
}

int ConnectTo(int port, const char* congestion) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const auto name_length = static_cast<socklen_t>(std::strlen(congestion));
  if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion, name_length) != 0) {
    Fail("TCP_CONGESTION");
  }
  const sockaddr_in address = Loopback(port);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    Fail("connect");
  }
  return fd;
}

void SendImmediate(int fd) {
  const int one = 1;
  if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) != 0) Fail("TCP_NODELAY");
}

}  // namespace esdp_bench
