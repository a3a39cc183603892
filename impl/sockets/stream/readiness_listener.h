#ifndef ESDP_IMPL_SOCKETS_STREAM_READINESS_LISTENER_H_
#define ESDP_IMPL_SOCKETS_STREAM_READINESS_LISTENER_H_

namespace esdp::sockets {

// Who is told that a connection could do something else than before, or that more bytes wait, and of
// each transfer that has ended.
class ReadinessListener {
 public:
  virtual ~ReadinessListener() = default;
  // By any thread, which may hold the shard lock and no other.
  virtual void OnReadinessChange() = 0;
  // A transfer has had its event.
  virtual void OnTransferEnded() = 0;
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_STREAM_READINESS_LISTENER_H_
