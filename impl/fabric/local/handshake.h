#ifndef ESDP_IMPL_FABRIC_LOCAL_HANDSHAKE_H_
#define ESDP_IMPL_FABRIC_LOCAL_HANDSHAKE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "impl/base/bytes.h"
#include "impl/base/shared_memory.h"
#include "impl/fabric/local/layout.h"
#include "impl/fabric/local/socket_message.h"
#include "impl/fabric/types.h"

// The two messages by which two ends meet, one each way over a unix socket that keeps messages
// apart. Both ends run on one machine, so that numbers are as the processor has them.

namespace esdp::fabric::local {

enum class HelloKind : uint32_t { kRequest = 1, kAccept, kReject };

inline constexpr std::array<char, 8> kHelloMagic{'e', 's', 'd', 'p', '-', 's', 'h', 'm'};
// Ends that lay out their blocks in different ways have nothing to say to each other.
inline constexpr uint64_t kHelloLayout = kLayoutVersion << 32 | sizeof(Block);

struct HelloAddress {
  uint32_t family = 0;
  uint32_t port = 0;
  uint32_t scope_id = 0;
  std::array<uint8_t, 16> bytes{};
};
HelloAddress ToHello(const Address& address);
// The caller has checked it by IsAddress.
Address FromHello(const HelloAddress& address);
bool IsAddress(const HelloAddress& address);

struct Hello {
  std::array<char, 8> magic = kHelloMagic;
  uint64_t layout = kHelloLayout;
  HelloKind kind = HelloKind::kRequest;
  // As the sender has offered or, in an answer, agreed to.
  uint32_t initiator_depth = 0;
  uint32_t responder_resources = 0;
  uint32_t private_data_bytes = 0;
  uint64_t nonce_address = 0;  // 0: none is to be read
  uint64_t fabric = 0;         // the sender's, among those of its process; 0: it does not say
  HelloAddress from{};         // kRequest: the connecting side's
  HelloAddress to{};           // kRequest: where it has connected to
  std::array<std::byte, kPrivateDataMax> private_data{};

  ConstBytes PrivateData() const { return ConstBytes(private_data).first(private_data_bytes); }
  void SetPrivateData(ConstBytes bytes);
};
static_assert(std::is_trivially_copyable_v<Hello>);

// With one descriptor, or none. False: the peer is gone, or the system refuses; errno tells.
bool SendHello(int socket, const Hello& hello, const Descriptor* block);

using HelloOutcome = MessageOutcome;

// kDone: every field is within its limits; `block` is open if one came.
HelloOutcome ReceiveHello(int socket, Hello& hello, Descriptor& block);

}  // namespace esdp::fabric::local

#endif  // ESDP_IMPL_FABRIC_LOCAL_HANDSHAKE_H_
