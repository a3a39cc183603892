#ifndef ESDP_IMPL_SOCKETS_STREAM_READINESS_LISTENER_H_
#define ESDP_IMPL_SOCKETS_STREAM_READINESS_LISTENER_H_

namespace esdp::sockets {

// Who is told that a connection could do something else than before, or that more bytes wait.
class ReadinessListener {
 public:
  virtual ~ReadinessListener() = default;
  // By any thread, which may hold the shard lock and no other.
  virtual void OnReadinessChange() = 0;
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_STREAM_READINESS_LISTENER_H_
