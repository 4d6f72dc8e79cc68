#include "octet/comm/planned/planned.hpp"

namespace octet::comm {

void PlannedCommunicator::run(Stream& stream, const Call& call, const Call*) {
  check(stream.device() == Device::null, "{}: planned ranks exchange nothing", to_text(call));
}

}  // namespace octet::comm
