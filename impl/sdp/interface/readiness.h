#ifndef ESDP_IMPL_SDP_INTERFACE_READINESS_H_
#define ESDP_IMPL_SDP_INTERFACE_READINESS_H_

namespace esdp::sdp {

// What an application could do now without a wait for the peer.
struct Readiness {
  // Bytes of the peer wait and no receive takes them: in our buffers, or in an advert of the peer's.
  bool readable = false;
  // A small send would be copied at once. False behind a shutdown, and without a queue pair.
  bool writable = false;
  bool urgent = false;  // an urgent byte is announced of which no AskUrgent has heard
  // Nothing comes behind what is readable: the peer has shut down, or the connection has ended.
  bool ended = false;

  bool operator==(const Readiness&) const = default;
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_INTERFACE_READINESS_H_
