// Compiled by the test numerics.nvcc: every formula of octet/numerics, called from a kernel.
#include "octet/numerics/formats.hpp"
#include "octet/numerics/in_range.hpp"
#include "octet/numerics/math.hpp"
#include "octet/numerics/philox.hpp"
#include "octet/numerics/rounding.hpp"
#include "octet/numerics/scale.hpp"
#include "octet/numerics/value.hpp"

namespace {

using namespace octet;

template <class Format>
__device__ float through(float x, float amax, std::uint32_t random) {
  const auto quotient = block_scale(amax, {.rule = ScaleRule::quotient, .format_max = Format::max, .overflow = amax});
  const auto e8m0 = block_scale(amax, {.rule = ScaleRule::e8m0, .format_max = Format::max});
  const std::uint8_t nearest = encode<Format>(x * quotient.scale);
  const std::uint8_t stochastic = encode_stochastic<Format>(x * scale_from_history(amax, Format::max, 1.0f), random);
  return decode<Format>(nearest) + decode<Format>(stochastic) + decode_e8m0(std::uint8_t(e8m0.code)) + e8m0.scale +
         decode_e8m0(encode_e8m0(amax)) + InRange<Format, float>(x).value();
}

}  // namespace

__global__ void every_formula(float* values, float amax, std::uint64_t key) {
  const float x = values[threadIdx.x];
  const RandomWords random = philox(key, threadIdx.x);
  float y = through<E4M3>(x, amax, random.w[0]) + through<E5M2>(x, amax, random.w[1]);
  y += to_float(to_bf16(x)) + to_float(to_bf16_stochastic(x, random.w[2])) + round_to_bf16(x) + to_float(to_fp16(x)) + uniform(random.w[3]);
  y += larger(magnitude(x), smaller(x, splat<float>(1.0f))) + to_float(int_of(x));
  const auto [sine, cosine] = math::sin_cos(x);
  y += math::exp(x) + math::log(x) + math::tanh(x) + math::sin(x) + math::cos(x) + math::sqrt(x) + sine * cosine;
  values[threadIdx.x] = y + float(math::exp(double(x)) + math::log(double(x)) + math::sqrt(double(x)));
}
