#include "impl/fabric/port.h"

#include <string>

namespace esdp::fabric {
namespace {

absl::Status Unsupported(const char* call) {
  return absl::UnimplementedError(std::string(call) + " is not supported by this fabric");
}

}  // namespace

absl::StatusOr<RegionId> Fabric::Register(std::byte*, uint64_t, Access) {
  return Unsupported("Register");
}
absl::StatusOr<RegionId> Fabric::RegisterShared(const SharedFile&, std::byte* base, uint64_t length,
                                                Access access) {
  return Register(base, length, access);
}

absl::StatusOr<RegionId> Fabric::RegisterDmaBuf(const DmaBuf&, std::byte*, uint64_t, Access) {
  return absl::UnimplementedError(std::string(name()) +
                                  " takes no dma-buf: only RDMA devices reach such memory");
}
absl::Status Fabric::Deregister(RegionId) { return Unsupported("Deregister"); }
absl::StatusOr<RemoteRange> Fabric::RegionKey(RegionId) { return Unsupported("RegionKey"); }
absl::StatusOr<RemoteRange> Fabric::Bind(QueuePairId, RegionId, std::byte*, uint64_t, Access) {
  return Unsupported("Bind");
}
uint64_t Fabric::Written(QueuePairId, uint32_t) const { return kWrittenUnknown; }
absl::Status Fabric::Unbind(QueuePairId, uint32_t) { return Unsupported("Unbind"); }

absl::StatusOr<QueuePairId> Fabric::CreateQueuePair(const QueuePairOptions&) {
  return Unsupported("CreateQueuePair");
}
absl::Status Fabric::DestroyQueuePair(QueuePairId) { return Unsupported("DestroyQueuePair"); }
absl::Status Fabric::PostSend(QueuePairId, absl::Span<const SendWork>) {
  return Unsupported("PostSend");
}
void Fabric::ReleaseUnusedReceives(QueuePairId) {}
absl::Status Fabric::PostReceive(QueuePairId, absl::Span<const ReceiveWork>) {
  return Unsupported("PostReceive");
}

absl::StatusOr<ListenerId> Fabric::Listen(const Address&, int) { return Unsupported("Listen"); }
absl::StatusOr<Address> Fabric::ListenerAddress(ListenerId) const {
  return Unsupported("ListenerAddress");
}
absl::Status Fabric::StopListening(ListenerId) { return Unsupported("StopListening"); }
absl::StatusOr<ListenerId> Fabric::ListenOver(int) { return Unsupported("ListenOver"); }
absl::StatusOr<Address> Fabric::ReserveAddress(QueuePairId, const Address&, const Address&) {
  return Unsupported("ReserveAddress");
}
absl::Status Fabric::Connect(QueuePairId, const Address&, const Address&, ConstBytes, Time) {
  return Unsupported("Connect");
}
absl::Status Fabric::ConnectOver(QueuePairId, int, ConstBytes, Time) {
  return Unsupported("ConnectOver");
}
absl::Status Fabric::Accept(RequestId, QueuePairId, ConstBytes) { return Unsupported("Accept"); }
absl::Status Fabric::Reject(RequestId, ConstBytes) { return Unsupported("Reject"); }
absl::Status Fabric::Disconnect(QueuePairId, bool) { return Unsupported("Disconnect"); }

size_t Fabric::Poll(absl::Span<Completion>) { return 0; }
void Fabric::ReturnLent(QueuePairId) {}
bool Fabric::PollRendezvous(RendezvousEvent&) { return false; }
bool Fabric::Advance(Time) { return false; }
// NOLINTNEXTLINE(performance-unnecessary-value-param): an implementation keeps it.
void Fabric::SetDoorbell(std::function<void()>) {}
void Fabric::WakeAt(Time) {}
bool Fabric::ExpectWaits(bool) { return false; }

}  // namespace esdp::fabric
