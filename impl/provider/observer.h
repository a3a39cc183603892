#ifndef ESDP_IMPL_PROVIDER_OBSERVER_H_
#define ESDP_IMPL_PROVIDER_OBSERVER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "impl/base/time.h"
#include "impl/provider/rejection.h"
#include "impl/provider/types.h"

// What passes between the front end and a shard while it runs.

namespace esdp::provider {

// What the front end hears. Calls come from whichever thread holds the shard lock, one at a time,
// and must neither block nor call back into the shard, except Submit (which then queues).
class Observer {
 public:
  virtual ~Observer() = default;
  // A connection has arrived at a listener; its data may follow. It is the front end's to close.
  // `fabric` carries it, by its place among the shard's.
  virtual void OnIncoming(ListenerId listener, ConnectionId connection, const Address& local,
                          const Address& peer, uint8_t fabric) = 0;
  // The set-up of the one connection of ListenOver has failed: nothing will come in there.
  virtual void OnListenerFailed(ListenerId listener, const Failure& cause) {
    (void)listener;
    (void)cause;
  }
  // An attempt of Connect has succeeded. One that failed for good is told by OnClosed alone.
  virtual void OnConnected(ConnectionId connection, const Address& local, const Address& peer,
                           uint8_t fabric) = 0;
  // The connection has failed: before the first of its operations is finished with that cause, so
  // that whoever hears of one posts no more. OnClosed follows.
  virtual void OnFailed(ConnectionId connection, const Failure& cause) {
    (void)connection;
    (void)cause;
  }
  virtual void OnTransferFinished(ConnectionId connection, Transfer& transfer,
                                  const TransferResult& result) = 0;
  // Called by TrySendImmediate, in the order of the stream.
  virtual void OnImmediateSent(ImmediateSend& send) = 0;
  // DisConn has left, or the connection is gone.
  virtual void OnShutDown(ConnectionId connection, const Failure& failure) = 0;
  // A connection request has met this limit of ours.
  virtual void OnRejected(Rejection reason) { (void)reason; }
  // An attempt to move the connection to a new queue pair is over: kOk, or why it is where it was,
  // or why it has ended.
  virtual void OnResumed(ConnectionId connection, const Failure& failure) {
    (void)connection;
    (void)failure;
  }
  // The connection has another queue pair now, of the fabric at this place.
  virtual void OnMoved(ConnectionId connection, uint8_t fabric) {
    (void)connection;
    (void)fabric;
  }
  // What the application could do now; each change, and each time that more bytes wait, where it is
  // watched.
  virtual void OnReadiness(ConnectionId connection, const Readiness& readiness) {
    (void)connection;
    (void)readiness;
  }
  // Last word on a connection: every transfer has been finished. kOk for a clean end.
  virtual void OnClosed(ConnectionId connection, const Failure& cause, uint64_t bytes_received) = 0;
  // The time of a kAlarm has come.
  virtual void OnAlarm(uint64_t key) { (void)key; }

  // After one of the calls above that has asked for it, once the shard lock is free again: for what
  // takes long, or wakes who then calls the shard. By any thread, also by several at once.
  virtual void OnUnlocked() {}
  // The shard's, with its lock. No call, since it is asked each time.
  bool TakeUnlockedWish() {
    const bool wished = wishes_unlocked_;
    if (wished) wishes_unlocked_ = false;
    return wished;
  }

 protected:
  void WishUnlocked() { wishes_unlocked_ = true; }

 private:
  bool wishes_unlocked_ = false;
};

enum class Progress : uint8_t { kThread, kManual };

// What strangers may take of all that there is.
struct PeerBounds {
  // Incoming set-ups that have not come about, of all listeners; with a longer backlog as many as
  // that. Where there is no room, fabric::HalfOpen tells which one goes.
  uint32_t half_open = 256;
  uint32_t moving = 64;  // connections that follow their peers to another queue pair
  // Bytes by which the receive buffers of all connections may grow together.
  uint64_t receive_growth = uint64_t{256} << 20;
  uint32_t connections = 1 << 16;  // of all kinds, also those that are being set up or closed
  // Incoming ones of one address: at once; so many a second; and so many before that counts.
  uint32_t connections_of_address = 1 << 14;
  uint32_t accept_rate = 1 << 12;
  uint32_t accept_burst = 1 << 14;
  uint32_t spare_connections = 256;  // so many that have ended may leave behind what they used
};

class WireTap;

struct ShardOptions {
  Progress progress = Progress::kThread;
  std::optional<int> thread_cpu;  // pin the progress thread
  PeerBounds bounds;
  Duration spin{};  // how long the progress thread polls before it sleeps
  std::function<void(const std::string&)>
      log;                 // may be empty; called on the thread that holds the shard lock
  WireTap* tap = nullptr;  // sees every message; outlives the shard
};

// A request that never blocks and is answered through the Observer.
struct Request {
  enum class Kind : uint8_t {
    kTransfer,
    kCancel,
    kShutdown,
    kSuspend,
    kCancelSuspend,
    kClose,
    kAbort,
    kTaken,
    kModes,
    kReadiness,
    kAlarm
  } kind = Kind::kTransfer;
  ConnectionId connection = ConnectionId::kNone;
  // kTransfer: what to carry. kCancel: which one; it has been submitted before, but it may have
  // finished meanwhile, and its memory may carry another transfer with another tag: then nothing
  // happens. kAlarm: OnAlarm(tag) at `at`, which replaces an earlier one; kTimeInfinite clears it.
  // kTaken: the application owns this incoming connection now, so that it no longer counts against
  // its listener's backlog; every other request says so too.
  // kModes: the delivery modes wished from now on.
  // kReadiness: OnReadiness tells what it is, and each change.
  // kCancelSuspend: gives the kSuspend with this tag up, if its peer has not been told.
  Transfer* transfer = nullptr;
  CancelMode cancel_mode = CancelMode::kIfNotStarted;
  uint64_t tag = 0;  // kCancel: of the transfer; kAlarm: the key; kSuspend: its name
  Time at{};         // kAlarm; kSuspend: when it must be over
  ModeWish send_mode = ModeWish::kAutomatic;
  ModeWish receive_mode = ModeWish::kAutomatic;
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_OBSERVER_H_
