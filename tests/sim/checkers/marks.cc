#include "tests/sim/checkers/marks.h"

namespace esdp::simulation {

const std::vector<std::string>& RequiredMarks() {
  static const std::vector<std::string> required = {
      "sent Hello",
      "sent HelloAck",
      "sent Data",
      "sent SrcAvail",
      "sent RdmaRdCompl",
      "sent SendSm",
      "sent DisConn",
      "sent AbortConn",
      "sent ModeChange",
      "sent SrcAvailCancel",
      "sent SinkAvail",
      "sent RdmaWrCompl",
      "sent SinkAvailCancel",
      "sent SinkCancelAck",
      "sent ChRcvBuf",
      "sent ChRcvBufAck",
      "receive buffers that grow",
      "receive buffers that shrink",
      "a resize refused",
      "a message larger than the first buffers",
      "a SinkAvail while a resize is in flight",
      "Combined to Pipelined",
      "Pipelined to Combined",
      "Combined to Buffered",
      "Buffered to Combined",
      "Pipelined left with SrcAvails outstanding",
      "Pipelined left with SinkAvails in hand",
      "Pipelined left with SinkAvails outstanding",
      "a SinkAvail crosses the end of Pipelined",
      "a deployed peer's SrcAvail",
      "a deployed peer's cancel",
      "sent SuspComm",
      "sent SuspCommAck",
      "a connection on another queue pair",
      "a connection moved twice",
      "suspended with SrcAvails outstanding",
      "suspended with SinkAvails outstanding",
      "both suspend",
      "a transaction",
      "both ask for another size",
      "a ModeChange crosses REQ_PIPE",
      "a wish to suspend granted",
      "a wish to suspend not granted",
      "a hostile Hello",
      "a hostile HelloAck",
      "a key guessed",
      "a key used again, or another's",
      "a key used beyond its range",
      "a forged key refused",
      "a peer that died: reset by the peer",
      "a peer that died: peer silent",
      "a connection that outlives another's death",
      "a device with short limits",
      "a slow reader",
      "a SrcAvail and a SinkAvail cross",
      "a stale SinkAvail dropped",
      "two SrcAvails outstanding",
      "a cancel that took adverts back",
      "a cancel crosses the end",
      "an urgent byte announced",
      "an urgent byte sent",
      "an urgent byte overtakes what is before it",
      "an urgent byte overtakes an advert",
      "an urgent byte told of",
      "an urgent byte told of before it came",
      "both sides advertise as sources",
      "an advert read in parts",
      "SendSm after a part was read",
      "the last credit used",
      "a bare Data with two credits",
      "an exposure that failed",
      "a payload that waited for credits",
  };
  return required;
}

std::vector<std::string> Marks::Missing() const {
  std::vector<std::string> missing;
  for (const std::string& name : RequiredMarks()) {
    if (Count(name) == 0) missing.push_back(name);
  }
  return missing;
}

}  // namespace esdp::simulation
