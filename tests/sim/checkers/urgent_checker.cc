#include "tests/sim/checkers/urgent_checker.h"

namespace esdp::simulation {
namespace {

constexpr uint64_t kAheadMax = 65'535;

}  // namespace

void UrgentChecker::OnImmediateSent(const fabric::sim::WireEnd& from,
                                    const sdp::wire::Message& message, size_t payload,
                                    uint64_t shown) {
  const bool announces = (message.base.flags & sdp::wire::kFlagOobPending) != 0;
  const bool brings = (message.base.flags & sdp::wire::kFlagOobPresent) != 0;
  UrgentPage& end = Of(from);
  end.ahead += payload;
  if (announces) marks().Hit("an urgent byte announced");
  if (brings) {
    marks().Hit("an urgent byte sent");
    if (Get<sdp::wire::Data>(message) == nullptr || payload == 0) {
      Find(from, std::string("OOB_PRES on ") + NameOf(message) + " without user bytes to end in");
    }
    if (!end.announced && !announces) Find(from, "an urgent byte that was not announced");
    if (end.announced && end.ahead > end.ahead_max) {
      Find(from, "an urgent byte announced " + std::to_string(end.ahead) + " bytes ahead");
    }
  }
  if (announces && end.announced) Find(from, "OOB_PEND while another urgent byte is announced");
  if (brings) end.announced = false;
  if (!announces || brings) return;
  marks().Hit("an urgent byte overtakes what is before it");
  if (shown > 0) marks().Hit("an urgent byte overtakes an advert");
  end.announced = true;
  end.ahead = payload;
  end.ahead_max = kAheadMax + 1 + shown;
}

}  // namespace esdp::simulation
