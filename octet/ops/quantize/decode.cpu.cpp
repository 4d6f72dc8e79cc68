#include "octet/ops/quantize/quantize.kernels.hpp"
#include "octet/tensor/cpu/pair.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {
namespace {

template <class Format>
struct Codes {
  using Type = std::uint8_t;
  static constexpr bool in_pairs = true;
  OCTET_HD static Pair pair(const std::uint8_t* p) {
    const CodePair codes = load_codes(p);
    return {decode_lanes<Format, Vec>(codes.a), decode_lanes<Format, Vec>(codes.b)};
  }
  template <class Cursor>
  OCTET_HD static Vec load(const std::uint8_t* p, Cursor c) {
    return decode_lanes<Format, Vec>(widen(load_raw<ByteVec>(p, c)));
  }
};
template <class T>
struct Wide {
  using Type = T;
  static constexpr bool in_pairs = false;
  template <class Cursor>
  OCTET_HD static Vec load(const T* p, Cursor c) {
    return Lane{}.load(p, c);
  }
};

float descale_at(const Quantized& q, std::int64_t at) {
  return q.descales.dtype == DType::e8m0 ? decode_e8m0(q.descales.u8()[at]) : q.descales.f32()[at];
}

/// Whether every code's value times the descale is a BF16 number.
bool is_exact(const Quantized& q, float descale) { return q.power_of_two && descale >= 1 / ops::largest_exact_scale; }

/// One descale for all, or one for each value.
struct Same {
  Vec s;
  explicit Same(float descale) : s(splat<Vec>(descale)) {}
  template <class Cursor>
  OCTET_HD Vec at(Cursor) const {
    return s;
  }
  OCTET_HD Pair pair(std::int64_t) const { return {s, s}; }
};
struct Each {
  const float* s;
  template <class Cursor>
  OCTET_HD Vec at(Cursor c) const {
    return load_raw<Vec>(s, c);
  }
  OCTET_HD Pair pair(std::int64_t i) const { return load_pair<PairOrder::interleaved>(s + i); }
};

/// out[i] = value(in[i]) * descale. `exact`: no product need be rounded.
template <class From, class Out, class Descale>
void decode_stretch(const typename From::Type* in, std::int64_t n, const Descale& descale, bool exact, Out* out) {
  std::int64_t done = 0;
  if constexpr (From::in_pairs && std::is_same_v<Out, Bf16>)
    for (; exact && done + pair_width <= n; done += pair_width) {
      const Pair v = From::pair(in + done), s = descale.pair(done);
      store_pair<PairOrder::interleaved>(out + done, {v.a * s.a, v.b * s.b});
    }
  Lane{}.each(
      n, [&](auto c) { Lane{}.store(out, c, From::load(in, c) * descale.at(c)); }, done);
}

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
      decode_stretch<From>(in + at, n, Same(descale), !scaled || is_exact(q, descale), out + at);
    }
  });
}

/// Stored as [cols, rows], so that each value of a stored row has another descale: those of a stretch serve several stored rows.
template <class From, class Out>
void decode_view(const Quantized& q, Out* out) {
  const std::int64_t lines = q.block.rows == 0 ? 1 : 32;  // stored rows of one block; 32 in all layouts but those of stacks
  constexpr std::int64_t stretch = 256;                   // values of each
  const auto* in = q.codes.as<typename From::Type>();
  const std::int64_t rows = q.rows(), cols = q.cols();
  const auto stride = descale_stride(q.block, q.descales.dtype, rows, cols);
  const std::int64_t block_rows = q.block.rows ? q.block.rows : rows, block_cols = q.block.cols ? q.block.cols : cols;
  const std::int64_t stretches = ceil_div(rows, stretch);
  for_each(ceil_div(cols, lines) * stretches, lines * stretch * std::int64_t(sizeof *in + sizeof *out), [&](std::int64_t job) {
    const std::int64_t c0 = job / stretches * lines, c1 = c0 + lines < cols ? c0 + lines : cols;
    const std::int64_t r0 = job % stretches * stretch, n = rows - r0 < stretch ? rows - r0 : stretch;
    alignas(64) float descales[stretch];
    bool exact = true;
    for (std::int64_t i = 0; i < n; ++i) {
      descales[i] = descale_at(q, (r0 + i) / block_rows * stride.row_block + c0 / block_cols * stride.col_block);
      exact &= is_exact(q, descales[i]);
    }
    for (std::int64_t c = c0; c < c1; ++c) decode_stretch<From>(in + c * rows + r0, n, Each{descales}, exact, out + c * rows + r0);
  });
}

template <class Format, class Out>
void decode_codes(const Quantized& q, bool descaled, Out* out) {
  if (q.transposed && descaled && !q.block.whole_tensor()) decode_view<Codes<Format>>(q, out);
  else decode_rows<Codes<Format>>(q, descaled, out);
}

template <class Out>
void decode_to(const Quantized& q, bool descaled, Out* out) {
  if constexpr (!std::is_same_v<Out, Fp16>) {  // codes never become FP16
    if (q.codes.dtype == DType::e4m3) return decode_codes<E4M3>(q, descaled, out);
    if (q.codes.dtype == DType::e5m2) return decode_codes<E5M2>(q, descaled, out);
  }
  dispatch<float, Bf16, Fp16>(q.codes.dtype, "decode", [&]<class From>() { decode_rows<Wide<From>>(q, descaled, out); });
}

}  // namespace

void decode_operand(const Quantized& q, bool descaled, const Tensor& out) {
  dispatch<float, Bf16, Fp16>(out.dtype, "decode", [&]<class Out>() { decode_to(q, descaled, out.as<Out>()); });
}

}  // namespace octet::cpu::OCTET_ISA
