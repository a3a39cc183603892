#include "impl/fabric/local/handshake.h"

namespace esdp::fabric::local {
namespace {

constexpr uint32_t kPortMax = 0xffff;

bool IsWellFormed(const Hello& hello) {
  return hello.magic == kHelloMagic && hello.layout == kHelloLayout &&
         hello.kind >= HelloKind::kRequest && hello.kind <= HelloKind::kReject &&
         hello.private_data_bytes <= kPrivateDataMax;
}

}  // namespace

HelloAddress ToHello(const Address& address) {
  return {.family = static_cast<uint32_t>(address.family),
          .port = address.port,
          .scope_id = address.scope_id,
          .bytes = address.bytes};
}

bool IsAddress(const HelloAddress& address) {
  return (address.family == static_cast<uint32_t>(Family::kIpv4) ||
          address.family == static_cast<uint32_t>(Family::kIpv6)) &&
         address.port != 0 && address.port <= kPortMax;
}

Address FromHello(const HelloAddress& address) {
  return {.family = static_cast<Family>(address.family),
          .port = static_cast<uint16_t>(address.port),
          .scope_id = address.scope_id,
          .bytes = address.bytes};
}

void Hello::SetPrivateData(ConstBytes bytes) {
  private_data_bytes = static_cast<uint32_t>(bytes.size());
  CopyBytes(private_data, bytes);
}

bool SendHello(int socket, const Hello& hello, const Descriptor* block) {
  return SendMessage(socket, std::as_bytes(std::span(&hello, 1)), block);
}

HelloOutcome ReceiveHello(int socket, Hello& hello, Descriptor& block) {
  Hello received;
  size_t length = 0;
  const HelloOutcome outcome =
      ReceiveMessage(socket, std::as_writable_bytes(std::span(&received, 1)), length, block);
  if (outcome != HelloOutcome::kDone) return outcome;
  if (length != sizeof(received) || !IsWellFormed(received)) return HelloOutcome::kMalformed;
  hello = received;
  return HelloOutcome::kDone;
}

}  // namespace esdp::fabric::local
