#include <cstring>

#include "octet/ops/grouped_gemm/hopper/hopper.hpp"
#include "octet/tensor/cuda/device.hpp"
#include "tests/cuda/gemm_operands.hpp"

// Octet's own kernels for dense products of blocks of 128, each by itself: ops::gemm() takes the fastest. Sizes with whole tiles, with
// tiles that the last round cuts in two, and with tiles beyond the matrix. Bounds are those of gemm.parity.cpp.

namespace octet::parity {
namespace {

using testing::dot_bound, testing::unit_f32;

struct Kernel {
  const char* name;
  bool (*run)(cuda::Queue, const ops::Gemm&);
  int b;  // of operand_kinds(), beside 1x128 of `a`
  bool (*takes)(const Shape& mnk) = [](const Shape&) { return true; };
};

struct Try {
  Kernel kernel;
  Shape mnk;
  DType result;
  bool accumulate;
  std::string name() const { return format("gemm own {} {} {}{}", kernel.name, mnk, result, accumulate ? " accumulate" : ""); }
};

void multiply(Side& side, const Try& t, const ops::Gemm& g) {
  if (side.device() == Device::cpu || cuda::facts().major != 9) ops::gemm(side.stream(), g);
  else check(t.kernel.run(side.stream().queue(), g), "{} refuses its operands", t.kernel.name);
}

void run(Side& side, const Try& t) {
  const std::int64_t M = t.mnk[0], N = t.mnk[1], K = t.mnk[2];
  const auto kinds = operand_kinds();
  const OperandCodes a = operand(kinds[9], M, K, 1, Values::gaussian),
                     b = operand(kinds[std::size_t(t.kernel.b)], N, K, 2, Values::gaussian);
  const Tensor d = side.gaussian({M, N}, 3, t.result);
  multiply(side, t, {.a = put(side, a), .b = put(side, b), .d = d, .accumulate = t.accumulate});
  std::vector<float> size(std::size_t(M * N));
  if (side.device() == Device::cpu) {
    const Tensor sums = side.stream().empty({M, N}, DType::f32);
    ops::gemm(side.stream(), {.a = put(side, magnitudes(a)), .b = put(side, magnitudes(b)), .d = sums});
    std::memcpy(size.data(), sums.data, sums.bytes());
  }
  const double relative = 2 * dot_bound(double(K) + 8, unit_f32, 1) + 4 * 33 * 0x1p-13;
  const double rounded = t.accumulate ? 8 * std::max(testing::rounding_to(t.result).unit, 4 * unit_f32) : 0;  // values before are below 8
  side.result("d", d, {.bound = [=](std::int64_t i) { return relative * double(size[std::size_t(i)]) + rounded; }});
}

std::vector<Case> make() {
  std::vector<Case> cases;
  const auto two_tiles_of_rows = [](const Shape& s) { return s[0] > 256; };
  const auto even_tiles_of_columns = [](const Shape& s) { return ceil_div(s[1], 128) % 2 == 0; };
  for (const Kernel& k : {Kernel{"1x128 by 128x128", cuda::dense_1x128_128x128, 11}, Kernel{"1x128 by 1x128", cuda::dense_1x128_1x128, 9},
                          Kernel{"1x128 by 128x128 in pairs", cuda::dense_1x128_128x128_in_pairs, 11, two_tiles_of_rows},
                          Kernel{"1x128 by 1x128 in pairs", cuda::dense_1x128_1x128_in_pairs, 9, even_tiles_of_columns}})
    for (const Shape& s :
         {Shape{3112, 1536, 384}, Shape{3112, 1448, 256}, Shape{4608, 1024, 128}, Shape{1160, 896, 1040}, Shape{12, 136, 128}})
      for (const DType result : {DType::bf16, DType::f32}) {
        if (!k.takes(s)) continue;
        for (const bool accumulate : {false, true}) {
          const Try t{k, s, result, accumulate};
          cases.push_back({t.name(), [t](Side& side) { run(side, t); }});
        }
      }
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
