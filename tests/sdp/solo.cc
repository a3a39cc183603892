#include "tests/sdp/solo.h"

#include "tests/sdp/side.h"

namespace esdp::sdp::testing {

wire::Message Solo::PeerHello(const Peer& peer) const {
  wire::Hello hello;
  hello.capabilities = peer.capabilities;
  hello.max_adverts = peer.max_adverts;
  hello.local_receive_size = peer.receive_bytes;
  wire::Message message;
  message.base.buffers = peer.buffers;
  message.body = hello;
  return message;
}

wire::Message Solo::PeerHelloAck(const Peer& peer) const {
  wire::HelloAck hello_ack;
  hello_ack.capabilities = peer.capabilities;
  hello_ack.max_adverts = peer.max_adverts;
  hello_ack.actual_receive_size = peer.receive_bytes;
  wire::Message message;
  message.base.buffers = peer.buffers;
  message.body = hello_ack;
  return message;
}

void Solo::Establish(const Peer& peer) {
  peer_buffers_ = peer.buffers;
  Established established;
  established.reads_out_max = peer.reads_out;
  established.reads_in_max = peer.reads_in;
  if (config_.connecting) {
    Step(AskConnect{});
    established.hello_ack = PeerHelloAck(peer);
  } else {
    Step(HelloArrived{PeerHello(peer)});
  }
  Step(established);
}

const Actions& Solo::Step(const Input& input) {
  last_.clear();
  Input next = input;
  for (;;) {
    Actions actions;
    core_.Step(next, now, actions);
    std::optional<AdvertId> asked;
    bool prepare = false;
    for (const Action& action : actions) {
      Note(action);
      if (const auto* expose = std::get_if<Expose>(&action)) asked = expose->advert;
      prepare = prepare || std::holds_alternative<PrepareReceives>(action);
    }
    if (prepare) {
      next = ReceivesPrepared{prepares};
      continue;
    }
    if (!asked) return last_;
    const RemoteRange range{0x500 + static_cast<uint32_t>(*asked), 0x10000};
    next = exposes ? Input(Exposed{*asked, range}) : Input(ExposeFailed{*asked});
  }
}

void Solo::Note(const Action& action) {
  last_.push_back(action);
  all_.push_back(action);
  if (const auto* post = std::get_if<PostReceive>(&action)) {
    for (const ReceiveBuffer buffer : posted_) no_buffer_twice_ &= buffer != post->buffer;
    posted_.push_back(post->buffer);
    if (our_sequence_ == 0) our_buffers_ = static_cast<uint16_t>(posted_.size());
  }
  if (const auto* send = std::get_if<sdp::Send>(&action)) {
    our_sequence_ = send->message.base.sequence;
    our_acknowledged_ = send->message.base.acknowledged;
    our_buffers_ = send->message.base.buffers;
    ++sends_out_;
  }
}

MessageArrived Solo::Next(const wire::Body& body, uint32_t payload_bytes) {
  MessageArrived arrived;
  arrived.message.body = body;
  arrived.message.base.sequence = ++peer_sequence_;
  arrived.message.base.acknowledged = our_sequence_;
  arrived.message.base.buffers = peer_buffers_;
  arrived.payload_offset = wire::kBaseHeaderBytes;
  arrived.payload_length = payload_bytes;
  if (!posted_.empty()) {
    arrived.buffer = posted_.front();
    posted_.pop_front();
  }
  return arrived;
}

const Actions& Solo::Arrive(const wire::Body& body, uint32_t payload_bytes) {
  return Step(Next(body, payload_bytes));
}

void Solo::FinishSends() {
  for (; sends_out_ > 0; --sends_out_) Step(SendFinished{});
}

OperationId Solo::Send(uint32_t bytes, AskSend traits) {
  traits.piece = {OperationId{next_operation_++}, bytes, 0};
  Step(traits);
  return traits.piece.operation;
}

OperationId Solo::Receive(uint32_t bytes, AskReceive traits) {
  traits.piece = {OperationId{next_operation_++}, bytes, 0};
  Step(traits);
  return traits.piece.operation;
}

std::optional<FinishOperation> Solo::Result(OperationId operation) const {
  for (const FinishOperation& finish : Of<FinishOperation>(all_)) {
    if (finish.operation == operation) return finish;
  }
  return std::nullopt;
}

}  // namespace esdp::sdp::testing
