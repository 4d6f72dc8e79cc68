#pragma once

#include "octet/bench/bench.hpp"
#include "octet/bench/network.hpp"
#include "octet/machine/constants.hpp"

namespace octet::bench {

/// The constants of this machine by which step times are predicted. Limits of kernels are measured, then a step in BF16 and one under
/// `recipe`: every rate is its limit times the share of the floor that the step reached. Rates between ranks are those of `network`, where
/// it has them; others are those of `otherwise`, and are listed in `kept`.
struct Calibration {
  machine::MachineConstants constants;
  double share = 0, eight_bit_share = 0;  // of the floor that the steps reached
  std::vector<std::string> kept;          // keys that were not measured
};
Calibration calibrate(const train::RunConfig&, const std::string& recipe, const Effort&, const NetworkRates& network,
                      const machine::MachineConstants& otherwise);

}  // namespace octet::bench
