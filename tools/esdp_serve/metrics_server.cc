#include "tools/esdp_serve/metrics_server.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

namespace esdp_serve {
namespace {

constexpr size_t kRequestBytesMax = 4096;

struct SystemAddress {
  sockaddr_storage bytes{};
  socklen_t length = 0;
};

SystemAddress ToSystem(const esdp::Address& address) {
  SystemAddress system;
  if (address.family() == esdp::Family::kIpv4) {
    auto& one = reinterpret_cast<sockaddr_in&>(system.bytes);
    one.sin_family = AF_INET;
    one.sin_port = htons(address.port());
    std::memcpy(&one.sin_addr, address.bytes().data() + 12, 4);
    system.length = sizeof one;
  } else {
    auto& one = reinterpret_cast<sockaddr_in6&>(system.bytes);
    one.sin6_family = AF_INET6;
    one.sin6_port = htons(address.port());
    one.sin6_scope_id = address.scope_id();
    std::memcpy(&one.sin6_addr, address.bytes().data(), 16);
    system.length = sizeof one;
  }
  return system;
}

std::string Response(std::string_view line, const std::string& text) {
  return "HTTP/1.1 " + std::string(line) +
         "\r\nContent-Type: text/plain; version=0.0.4\r\nConnection: close\r\nContent-Length: " +
         std::to_string(text.size()) + "\r\n\r\n" + text;
}

// Up to the end of the header, however much of it is asked for. Whoever is slow gets no answer.
std::string ReadRequest(int client) {
  std::string request;
  std::array<char, 1024> bytes{};
  while (request.size() < kRequestBytesMax && request.find("\r\n\r\n") == std::string::npos) {
    const ssize_t count = recv(client, bytes.data(), bytes.size(), 0);
    if (count <= 0) return "";
    request.append(bytes.data(), static_cast<size_t>(count));
  }
  return request;
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Open(const esdp::Address& address,
                                                                   const Metrics& metrics) {
  std::unique_ptr<MetricsServer> server(new MetricsServer(metrics));
  if (absl::Status status = server->Listen(address); !status.ok()) return status;
  server->thread_ = std::thread([raw = server.get()] { raw->Serve(); });
  return server;
}

absl::Status MetricsServer::Listen(const esdp::Address& address) {
  const SystemAddress system = ToSystem(address);
  listener_ = esdp_files::Descriptor(
      socket(system.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  ends_ = esdp_files::Descriptor(eventfd(0, EFD_CLOEXEC));
  const int on = 1;
  setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  constexpr int kBacklog = 16;
  if (!ends_.valid() ||
      bind(listener_.get(), reinterpret_cast<const sockaddr*>(&system.bytes), system.length) != 0 ||
      listen(listener_.get(), kBacklog) != 0 ||
      getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&bound), &length) != 0) {
    return absl::ErrnoToStatus(errno, "--metrics " + address.ToString());
  }
  // At the same place in both families.
  address_ = address.WithPort(ntohs(reinterpret_cast<const sockaddr_in&>(bound).sin_port));
  return absl::OkStatus();
}

void MetricsServer::Serve() {
  std::array<pollfd, 2> waits = {{{.fd = listener_.get(), .events = POLLIN, .revents = 0},
                                  {.fd = ends_.get(), .events = POLLIN, .revents = 0}}};
  while (poll(waits.data(), waits.size(), -1) >= 0 && waits[1].revents == 0) {
    const esdp_files::Descriptor client(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (client.valid()) Answer(client.get());
  }
}

void MetricsServer::Answer(int client) const {
  const timeval patience{.tv_sec = 1, .tv_usec = 0};
  setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const std::string request = ReadRequest(client);
  if (request.empty()) return;
  const std::string line = request.substr(0, request.find("\r\n"));
  const bool known = line.starts_with("GET /metrics ") || line.starts_with("GET / ");
  const std::string response = known ? Response("200 OK", MetricsText(metrics_))
                                     : Response("404 Not Found", "GET /metrics\n");
  send(client, response.data(), response.size(), MSG_NOSIGNAL);
}

MetricsServer::~MetricsServer() {
  if (ends_.valid()) eventfd_write(ends_.get(), 1);
  if (thread_.joinable()) thread_.join();
}

}  // namespace esdp_serve
