#pragma once

#include <cstdint>

namespace octet::ops {

/// Stretching of rotations, for contexts longer than the one that a model was trained with.
///
/// By the angle per position f = theta^(-2i/d) of pair i, the wavelength w = 2 pi / f, and L = original_max_position, a rotation turns L /
/// w times within L. The new angle is, with a share s of f itself,
///
///   (1 - s) f / factor + s f        linear: s = 0
///   by_turns   s = (L / w - low_freq_factor) / (high_freq_factor - low_freq_factor), between 0 and 1
///   yarn       s = 1 - (i - a) / (b - a), between 0 and 1; a and b: the pairs that turn high_freq_factor and low_freq_factor times,
///              d log(L / (2 pi turns)) / (2 log theta), within [0, d - 1], and with `truncate` rounded outwards
///
/// Yarn also scales cosines and sines by rope_amplitude(), and latent attention its scores by rope_score_factor(). Sources: Llama 3.1's
/// reference code; Chen et al. 2023, "Extending Context Window via Positional Interpolation"; Peng et al. 2023, "YaRN", eq. 17 to 22;
/// DeepSeek-V2's and -V3's reference code.
struct RopeScaling {
  enum class Kind : std::uint8_t { by_turns, linear, yarn } kind = Kind::by_turns;
  double factor = 8, low_freq_factor = 1, high_freq_factor = 4;  // yarn's beta_slow and beta_fast
  double original_max_position = 8192;
  // Of yarn; 0: not given.
  double mscale = 0, mscale_all_dim = 0, attention_factor = 0;
  bool truncate = true;
  bool operator==(const RopeScaling&) const = default;
};

/// Of a pair i < d/2 of a head of d columns.
double scaled_frequency(std::int64_t head_dim, std::int64_t i, double theta, const RopeScaling&);

/// Of yarn, with m(x) = 0.1 x log factor + 1, or 1 for a factor up to 1: attention_factor if it is given, else m(mscale) /
/// m(mscale_all_dim) if both are, else m(1). Of others 1.
double rope_amplitude(const RopeScaling&);
/// m(mscale_all_dim)^2 if that is given, else 1.
double rope_score_factor(const RopeScaling&);

}  // namespace octet::ops
