#ifndef ESDP_IMPL_SOCKETS_STREAM_READINESS_LISTENER_H_
#define ESDP_IMPL_SOCKETS_STREAM_READINESS_LISTENER_H_

namespace esdp::sockets {

// Who is told that a connection could do something else than before, or that more bytes wait, and of
// each transfer that has ended. It takes note of that, and shows it when it is asked to.
class ReadinessListener {
 public:
  virtual ~ReadinessListener() = default;
  // By any thread, which may hold the shard lock. True: nothing else was to be shown, so that Show
  // has to be called once more.
  virtual bool OnReadinessChange() = 0;
  // A transfer has had its event.
  virtual bool OnTransferEnded() = 0;
  // By any thread, which holds no lock if it can be helped.
  virtual void Show() = 0;
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_STREAM_READINESS_LISTENER_H_
