#pragma once

// Only for *.cpu.cpp files: row bodies that read a saved activation, decoded as it is loaded.

#include "octet/ops/quantize/saved.hpp"
#include "octet/tensor/cpu/lanes.hpp"

namespace octet::cpu::OCTET_ISA {

/// A row of codes from column `at` on, a multiple of the block, with a scale per block of the row.
struct CodedRow {
  const std::uint8_t *codes, *scales;
  std::int64_t at = 0;
  OCTET_HD CodedRow operator+(std::int64_t columns) const { return {codes, scales, at + columns}; }
};

struct CodedLane : Lane {
  using Lane::load;
  template <class Cursor>
  OCTET_HD Vec load(const CodedRow& x, Cursor c) const {
    return decode_lanes<E4M3, Vec>(widen(load_raw<ByteVec>(x.codes + x.at, c))) * decode_e8m0(x.scales[(x.at + c.at) / ops::saved_block]);
  }
};

/// f(lanes, row) where row(r) is row r of x as its lanes load it: values of T, or codes.
template <class T, class F>
void with_rows(const ops::Saved& x, const F& f) {
  const std::int64_t cols = x.shape[1];
  if (!x.coded()) return f(Lane{}, [p = x.values.as<T>(), cols](std::int64_t r) { return p + r * cols; });
  const Quantized& q = x.codes;
  f(CodedLane{}, [codes = q.codes.u8(), scales = q.descales.u8(), cols, stride = q.descales.shape[1]](std::int64_t r) {
    return CodedRow{codes + r * cols, scales + r * stride};
  });
}

}  // namespace octet::cpu::OCTET_ISA
