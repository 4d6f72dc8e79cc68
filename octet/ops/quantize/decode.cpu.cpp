#include "octet/ops/quantize/quantize.kernels.hpp"
#include "octet/tensor/cpu/lanes.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {
namespace {

template <class Format>
struct Codes {
  using Type = std::uint8_t;
  template <class Cursor> OCTET_HD static Vec load(const std::uint8_t* p, Cursor c) { return decode_lanes<Format, Vec>(widen(load_raw<ByteVec>(p, c))); }
};
template <class T>
struct Wide {
  using Type = T;
  template <class Cursor> OCTET_HD static Vec load(const T* p, Cursor c) { return Lane{}.load(p, c); }
};

float descale_at(const Quantized& q, std::int64_t at) { return q.descales.dtype == DType::e8m0 ? decode_e8m0(q.descales.u8()[at]) : q.descales.f32()[at]; }

/// Row by row, and in each row stretch by stretch of one descale.
template <class From, class Out>
void decode_rows(const Quantized& q, bool descaled, Out* out) {
  const auto* in = q.codes.as<typename From::Type>();
  const std::int64_t rows = q.codes.shape[0], cols = q.codes.shape[1];
  const bool scaled = descaled && q.descales;
  const auto stride = scaled ? descale_stride(q.block, q.descales.dtype, rows, cols) : DescaleStride{};
  const std::int64_t block_rows = scaled && q.block.rows ? q.block.rows : rows, block_cols = scaled && q.block.cols ? q.block.cols : cols;
  for_each(rows, cols * std::int64_t(sizeof *in + sizeof *out), [&](std::int64_t r) {
    for (std::int64_t c0 = 0; c0 < cols; c0 += block_cols) {
      const float descale = scaled ? descale_at(q, r / block_rows * stride.row_block + c0 / block_cols * stride.col_block) : 1.0f;
      const std::int64_t at = r * cols + c0, n = cols - c0 < block_cols ? cols - c0 : block_cols;
      Lane{}.each(n, [&](auto c) { Lane{}.store(out + at, c, From::load(in + at, c) * descale); });
    }
  });
}

template <class Out>
void decode_to(const Quantized& q, bool descaled, Out* out) {
  switch (q.codes.dtype) {
    case DType::e4m3: return decode_rows<Codes<E4M3>>(q, descaled, out);
    case DType::e5m2: return decode_rows<Codes<E5M2>>(q, descaled, out);
    case DType::bf16: return decode_rows<Wide<Bf16>>(q, descaled, out);
    default: return decode_rows<Wide<float>>(q, descaled, out);
  }
}

}  // namespace

void decode_operand(const Quantized& q, bool descaled, const Tensor& out) {
  if (out.dtype == DType::bf16) decode_to(q, descaled, out.bf16());
  else decode_to(q, descaled, out.f32());
}

}  // namespace octet::cpu::OCTET_ISA
