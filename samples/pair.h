#ifndef ESDP_SAMPLES_PAIR_H_
#define ESDP_SAMPLES_PAIR_H_

#include <utility>

#include "absl/types/span.h"
#include "esdp/context.h"
#include "samples/arguments.h"

// What samples in one process share: both ends of a connection.

namespace samples {

// Waits for the next event. Errors of the operation are the caller's to look at.
inline esdp::Event Next(esdp::EventQueue& queue) {
  esdp::Event event;
  Value(queue.Dequeue(absl::MakeSpan(&event, 1)));
  return event;
}

// The next event, which must tell of success.
inline esdp::Event Await(esdp::EventQueue& queue) {
  const esdp::Event event = Next(queue);
  Check(event.status());
  return event;
}

inline esdp::Socket Listen(esdp::Context& context, int backlog,
                           const esdp::SocketOptions& options = {}) {
  esdp::Socket listener =
      Value(context.CreateSocket(esdp::Family::kIpv4, esdp::SocketType::kStream, options));
  Check(listener.Bind(esdp::Address::Loopback(esdp::Family::kIpv4, 0)));
  Check(listener.Listen(backlog));
  return listener;
}

struct Pair {
  esdp::Socket client;
  esdp::Socket server;
};

// `queue` must be empty: the events of Connect and Accept are taken from it.
inline Pair Connect(esdp::Context& context, esdp::EventQueue& queue, esdp::Socket& listener,
                    const esdp::SocketOptions& options = {}) {
  Pair pair;
  pair.client =
      Value(context.CreateSocket(esdp::Family::kIpv4, esdp::SocketType::kStream, options));
  Value(listener.Accept(1, {queue}));
  Value(pair.client.Connect(listener.local(), {queue}));
  for (int i = 0; i < 2; ++i) {
    const esdp::Event event = Await(queue);
    if (event.type == esdp::EventType::kAccept) {
      pair.server = Value(context.TakeAccepted(event.accepted));
    }
  }
  return pair;
}

inline Pair Connect(esdp::Context& context, esdp::EventQueue& queue) {
  esdp::Socket listener = Listen(context, 1);
  return Connect(context, queue, listener);
}

}  // namespace samples

#endif  // ESDP_SAMPLES_PAIR_H_
