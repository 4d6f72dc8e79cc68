#include "octet/ops/rope/rope_scaling.hpp"

#include <algorithm>
#include <cmath>

namespace octet::ops {
namespace {

constexpr double two_pi = 6.283185307179586476925;

double frequency_of(std::int64_t head_dim, std::int64_t i, double theta) { return std::pow(theta, -2.0 * double(i) / double(head_dim)); }

double share_by_turns(double frequency, const RopeScaling& s) {
  const double turns = s.original_max_position * frequency / two_pi;  // L / w
  if (turns > s.high_freq_factor) return 1;
  if (turns < s.low_freq_factor) return 0;
  return (turns - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
}

double share_of_yarn(std::int64_t head_dim, std::int64_t i, double theta, const RopeScaling& s) {
  constexpr double least_range = 0.001;  // as in the reference code
  const auto pair_of = [&](double turns) {
    return double(head_dim) * std::log(s.original_max_position / (turns * two_pi)) / (2 * std::log(theta));
  };
  double first = pair_of(s.high_freq_factor), last = pair_of(s.low_freq_factor);
  if (s.truncate) first = std::floor(first), last = std::ceil(last);
  first = std::max(first, 0.0), last = std::min(last, double(head_dim - 1));
  if (first == last) last += least_range;
  return 1 - std::clamp((double(i) - first) / (last - first), 0.0, 1.0);
}

double mscale_of(double factor, double x) { return factor <= 1 ? 1 : 0.1 * x * std::log(factor) + 1; }

}  // namespace

double scaled_frequency(std::int64_t head_dim, std::int64_t i, double theta, const RopeScaling& s) {
  const double frequency = frequency_of(head_dim, i, theta);
  double share = 0;
  if (s.kind == RopeScaling::Kind::by_turns) share = share_by_turns(frequency, s);
  if (s.kind == RopeScaling::Kind::yarn) share = share_of_yarn(head_dim, i, theta, s);
  if (share == 1) return frequency;
  if (share == 0) return frequency / s.factor;
  return (1 - share) * frequency / s.factor + share * frequency;
}

double rope_amplitude(const RopeScaling& s) {
  if (s.kind != RopeScaling::Kind::yarn) return 1;
  if (s.attention_factor > 0) return s.attention_factor;
  if (s.mscale > 0 && s.mscale_all_dim > 0) return mscale_of(s.factor, s.mscale) / mscale_of(s.factor, s.mscale_all_dim);
  return mscale_of(s.factor, 1);
}

double rope_score_factor(const RopeScaling& s) {
  if (s.kind != RopeScaling::Kind::yarn || s.mscale_all_dim == 0) return 1;
  const double m = mscale_of(s.factor, s.mscale_all_dim);
  return m * m;
}

}  // namespace octet::ops
