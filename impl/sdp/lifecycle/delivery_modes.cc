#include "impl/sdp/lifecycle/delivery_modes.h"

#include <optional>

namespace esdp::sdp {

DeliveryModes::Answer DeliveryModes::OnModeChange(const wire::ModeChange& change,
                                                  size_t adverts_held) {
  const Modes::Change led_to = usable_ || change.mode == Mode::kCombined
                                   ? modes_.OnModeChange(change)
                                   : Modes::Change::kIllegal;
  if (led_to == Modes::Change::kIllegal) {
    return {"ModeChange: not from this mode, or not by its master", false};
  }
  if (modes_.receive() == Mode::kBuffered && adverts_held > 0) {
    return {"ModeChange: to Buffered with a SrcAvail outstanding", false};
  }
  if (led_to == Modes::Change::kSendRaised) policy_.OnRaised();
  return {nullptr, led_to == Modes::Change::kReceiveLowered};
}

bool DeliveryModes::SendDue(const Facts& facts, Outgoing& outgoing, Actions& actions,
                            Counters& counters) {
  bool left_pipelined = false;
  if (facts.may_send && outgoing.MaySendControl()) {
    const auto next = policy_.NextSend(modes_.send(), facts.large_sends);
    const auto change = next ? modes_.ChangeOfSend(*next) : std::nullopt;
    const bool ready = (next != Mode::kBuffered || !facts.source_adverts_out) &&
                       (next != Mode::kCombined || !facts.writing);
    if (change && ready) left_pipelined = Post(*change, outgoing, actions, counters);
  }
  if (facts.may_receive && outgoing.MaySendControl()) {
    const auto next = policy_.NextReceive(modes_.receive(), facts.large_receives);
    const auto change = next ? modes_.ChangeOfReceive(*next) : std::nullopt;
    if (change) left_pipelined = Post(*change, outgoing, actions, counters) || left_pipelined;
  }
  return left_pipelined;
}

bool DeliveryModes::Post(const wire::ModeChange& change, Outgoing& outgoing, Actions& actions,
                         Counters& counters) {
  const Send& send = outgoing.Post(change, Outgoing::Kind::kControl, actions, counters);
  // The flag names the half as the peer sees it.
  const bool leaves_pipelined = !change.changes_send_half && modes_.send() == Mode::kPipelined;
  modes_.OnPosted(change, send.message.base.sequence);
  ++counters.mode_changes_sent;
  return leaves_pipelined;
}

}  // namespace esdp::sdp
