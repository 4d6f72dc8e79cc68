#include "octet/train/study/twin.hpp"

#include <bit>

#include "octet/base/path.hpp"
#include "octet/nn/host_values.hpp"
#include "octet/numerics/philox.hpp"
#include "octet/numerics/rounding.hpp"

namespace octet::train {

namespace {

// Neighbours of a number differ by 1 in their bits. `largest`: the bits of the largest finite one.
template <class Bits>
void nudge_codes(Stream& stream, const Tensor& codes, const std::vector<CutPiece>& places, std::uint64_t key, std::uint64_t twin,
                 Bits largest) {
  constexpr Bits sign = Bits(Bits(1) << (8 * sizeof(Bits) - 1));
  std::vector<Bits> bits(std::size_t(codes.count()));
  download(stream, codes, bits.data());
  each_run(places, [&](std::int64_t begin, std::int64_t place, std::int64_t n) {
    RandomWords random = philox(key, std::uint64_t(place) / 128, twin);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t e = place + i;
      if (e % 128 == 0) random = philox(key, std::uint64_t(e) / 128, twin);
      Bits& x = bits[std::size_t(begin + i)];
      const Bits size = x & Bits(~sign);
      if (size == 0) continue;
      const bool up = (random.w[e % 128 / 32] >> (e % 32) & 1) != 0 && size != largest;
      x = Bits(up ? x + 1 : x - 1);
    }
  });
  upload(stream, bits.data(), codes);
}

void nudge_slice(Stream& stream, const ParameterSlice& slice, std::uint64_t seed, std::uint64_t twin) {
  const std::uint64_t key = seed ^ hash_of(slice.parameter->path.c_str());
  const Tensor& codes = slice.value.codes;
  const std::int64_t n = codes.count(), count = slice.parameter->shape.count();
  const Cut& cut = slice.parameter->cut;
  const std::vector<CutPiece> at = pieces_of(cut ? cut.pieces : std::vector<CutPiece>{{count, 0, count, count}}, slice.first, n);
  switch (codes.dtype) {
    case DType::f32: nudge_codes<std::uint32_t>(stream, codes, at, key, twin, std::bit_cast<std::uint32_t>(0x1.fffffep127f)); break;
    case DType::bf16: nudge_codes<std::uint16_t>(stream, codes, at, key, twin, to_bf16(bf16_max).bits); break;
    case DType::f16: nudge_codes<std::uint16_t>(stream, codes, at, key, twin, to_fp16(Fp16::max).bits); break;
    case DType::e4m3: nudge_codes<std::uint8_t>(stream, codes, at, key, twin, E4M3::max_code); break;
    default: unsupported_dtype("nudge", codes.dtype, {DType::f32, DType::bf16, DType::f16, DType::e4m3});
  }
  if (slice.value.scales) nn::set_tensor_maximum(stream, slice.value);
  ++slice.parameter->version;
}

}  // namespace

void nudge(Stream& stream, const nn::Parameters& parameters, std::uint64_t seed, int twin) {
  check(twin >= 1, "nudge: twins are numbered from 1, got {}", twin);
  for (const ParameterSlice& slice : parameters.slices()) nudge_slice(stream, slice, seed, std::uint64_t(twin));
}

void Twin::begin(Engine& e) {
  if (number_ > 0) nudge(e.stream, e.parameters, seed_, number_);
}

int twin_of(const std::string& run_folder) {
  const std::string path = run_folder + "/run.json";
  return !run_folder.empty() && exists(path) ? telemetry::read_run_facts(path).twin : 0;
}

}  // namespace octet::train
