#include "impl/exs/operation.h"

namespace esdp::exs {

exs_event_t EventOf(const Operation& operation) {
  exs_event_t event{};
  event.exs_evt_type = operation.type;
  event.exs_evt_socket = operation.number;
  event.exs_evt_ahandle = operation.handle;
  return event;
}

exs_event_t Finished(const Operation& operation, int error, uint64_t bytes, uint32_t flags) {
  exs_event_t event = EventOf(operation);
  event.exs_evt_errno = error;
  event.exs_evt_flags = flags;
  switch (operation.type) {
    case EXS_EVT_SEND:
    case EXS_EVT_RECV:
      event.exs_evt_union.exs_evt_xfer = {operation.buffer, bytes, operation.memory, 0, {}};
      break;
    case EXS_EVT_SENDMSG:
    case EXS_EVT_RECVMSG:
      event.exs_evt_union.exs_evt_xfermsg = {operation.message, bytes, {}};
      break;
    case EXS_EVT_SENDFILE:
      event.exs_evt_union.exs_evt_xferfile = {operation.file, bytes, {}};
      break;
    case EXS_EVT_ACCEPT:
      event.exs_evt_union.exs_evt_accept = {-1, 0, nullptr, {}};
      break;
    default:
      break;
  }
  return event;
}

}  // namespace esdp::exs
