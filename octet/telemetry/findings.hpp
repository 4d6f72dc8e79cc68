#pragma once

#include <string>

#include "octet/telemetry/comparison.hpp"

namespace octet::telemetry {

/// "within", "over", "not resolved (±1.20%)", "diverged", "baseline", and "twin" for a twin. After it few_eight_bits(), where there are
/// few.
std::string verdict_text(const ComparisonRow&);

/// "no layer in FP8", or "23% of FLOP in FP8" of a share below one half; "" otherwise, and of NaN. The share is RunFacts::eight_bit_share.
std::string few_eight_bits(double share);

/// The result of a comparison in a few sentences: arms that run little or nothing in FP8, arms by verdict, arms that differ significantly
/// from the baseline, the gaps of the twins, and the number of seeds that would resolve the rest.
std::string findings(const Comparison&);

/// Seeds with which Student's interval around a gap is at most +-`width`, where one pair's gap has standard deviation `deviation` and
/// `arms` are judged together at `confidence`: the least n >= fewest_pairs with
///   t((1 - confidence) / (2 arms); n - 1) * deviation / sqrt(n) <= width
/// At most 10,000: that or more.
int seeds_to_resolve(double width, double deviation, int arms, double confidence);

/// An estimate of the standard deviation of one pair's gap: of the arms and twins with several seeds the root mean square of theirs,
/// otherwise, as if no arm differed from the baseline, median(|gap|) / 0.6745 over all. NaN where nothing was measured.
double pair_deviation(const Comparison&);

}  // namespace octet::telemetry
