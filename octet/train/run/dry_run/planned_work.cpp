#include "octet/train/run/dry_run/planned_work.hpp"

#include <cmath>

#include "octet/base/text.hpp"

namespace octet::train {

telemetry::StepWork promised_part(const Work& w) { return {w.gemm_flops, w.fp8_flops, w.collectives, w.sent_bytes}; }

void require_as_planned(const telemetry::StepWork& ran, const telemetry::StepWork& planned, std::int64_t step, int rank) {
  std::string wrong;
  // Beyond 2^53 FLOP per step, sums in another order differ in their last bits.
  const auto compare = [&](std::string_view what, double is, double wanted) {
    if (!(std::fabs(is - wanted) <= 1e-12 * wanted))
      wrong += format("{}{} {}, and {} planned", wrong.empty() ? "" : "; ", what, grouped(std::int64_t(is)), grouped(std::int64_t(wanted)));
  };
  compare("FLOP of matrix products:", ran.gemm_flops, planned.gemm_flops);
  compare("of these with 8-bit operands:", ran.fp8_flops, planned.fp8_flops);
  compare("collectives:", double(ran.collectives), double(planned.collectives));
  compare("bytes sent:", double(ran.sent_bytes), double(planned.sent_bytes));
  if (!wrong.empty())
    throw ContractError(
        format("step {} of rank {} did not run as planned: {}; the run ends, since its precision or its exchanges are not those "
               "of its configuration",
               step, rank, wrong));
}

}  // namespace octet::train
