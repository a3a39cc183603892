#ifndef ESDP_IMPL_SOCKETS_QUEUE_EVENT_TEXT_H_
#define ESDP_IMPL_SOCKETS_QUEUE_EVENT_TEXT_H_

#include <string_view>

#include "esdp/address.h"
#include "esdp/event.h"

namespace esdp::sockets {

// Gives the event of a failure its text. Where that names this peer the event holds the address,
// and only the rest is kept: what is kept does not grow with the number of peers.
void SetText(Event& event, std::string_view text, const Address& peer);

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_QUEUE_EVENT_TEXT_H_
