#pragma once

#include "octet/numerics/philox.hpp"
#include "octet/tensor/storage.hpp"
#include "tests/cuda/parity.hpp"

namespace octet::parity {

/// A variable of f16 or e4m3_tensor with a scale and random finite codes.
inline Stored some_codes(Side& side, Storage storage, Shape shape) {
  const auto word = [](std::int64_t i) { return philox(17, std::uint64_t(i)).w[0]; };
  Stored out{.scales = side.from({0x1p-19f, 0}, {2}), .storage = storage};
  if (storage == Storage::f16) {
    std::vector<Fp16> codes;
    for (std::int64_t i = 0; i < shape.count(); ++i) codes.push_back({std::uint16_t(word(i) & 0xBFFF)});  // magnitudes below 2
    out.codes = side.raw(codes, shape);
  } else {
    std::vector<std::uint8_t> codes;
    for (std::int64_t i = 0; i < shape.count(); ++i) codes.push_back(std::uint8_t((word(i) & 0x80) | (word(i) >> 8) % 0x7F));
    out.codes = side.raw(codes, shape);
    out.codes.dtype = DType::e4m3;
  }
  return out;
}

}  // namespace octet::parity
