#ifndef ESDP_TESTS_BENCH_LOOPBACK_H_
#define ESDP_TESTS_BENCH_LOOPBACK_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "esdp/context.h"
#include "samples/arguments.h"

// Connections within one process, for the programs that count what a connection costs.

namespace bench {

using samples::Check;
using samples::Value;

class Loopback {
 public:
  explicit Loopback(const esdp::ContextOptions& options, uint32_t depth,
                    const esdp::SocketOptions& sockets = {})
      : sockets_(sockets),
        context_(Value(esdp::Context::Open(options))),
        queue_(Value(context_.CreateQueue({.depth = depth}))),
        listener_(NewSocket()) {
    Check(listener_.Bind(esdp::Address::Loopback(esdp::Family::kIpv4, 0)));
    Check(listener_.Listen(64));
  }

  // One more connection: both its ends.
  std::pair<esdp::Socket, esdp::Socket> Connect() {
    Value(listener_.Accept(1, {queue_}));
    esdp::Socket connecting = NewSocket();
    Value(connecting.Connect(listener_.local(), {queue_}));
    esdp::Socket accepted;
    Await(2, [&](const esdp::Event& event) {
      if (event.type != esdp::EventType::kAccept) return;
      accepted = Value(context_.TakeAccepted(event.accepted));
    });
    return {std::move(connecting), std::move(accepted)};
  }

  // Takes `count` events; an error among them ends the program.
  template <typename Visit>
  void Await(size_t count, Visit visit) {
    esdp::Event events[16];
    while (count > 0) {
      const size_t room = count < 16 ? count : 16;
      const size_t taken = Value(queue_.Dequeue(absl::MakeSpan(events, room)));
      for (size_t i = 0; i < taken; ++i) {
        if (!events[i].ok()) Check(events[i].status());
        visit(events[i]);
      }
      count -= taken;
    }
  }

  esdp::Context& context() { return context_; }
  esdp::EventQueue& queue() { return queue_; }

 private:
  esdp::Socket NewSocket() {
    return Value(context_.CreateSocket(esdp::Family::kIpv4, esdp::SocketType::kStream, sockets_));
  }

  const esdp::SocketOptions sockets_;
  esdp::Context context_;
  esdp::EventQueue queue_;
  esdp::Socket listener_;
};

}  // namespace bench

#endif  // ESDP_TESTS_BENCH_LOOPBACK_H_
