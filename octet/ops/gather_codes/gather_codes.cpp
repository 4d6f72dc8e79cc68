#include "octet/ops/gather_codes/gather_codes.kernels.hpp"
#include "octet/ops/gather_rows/gather_rows.hpp"
#include "octet/ops/quantize/from_codes.hpp"
#include "octet/ops/quantize/quantize.hpp"

namespace octet::ops {
namespace {

// Rows and columns of codes that can be transposed are multiples of it.
constexpr std::int64_t side = 16;

bool encodes_tokens(const Stream& stream, const ExpertMap& map, const Sink& y) {
  const QTensor& to = y.codes;
  if (!y.spec.quantizes() || map.choices() == 1) return false;
  if (!to.cols) return bool(to.rows) && (y.spec.rows.whole_tensor() || y.spec.rows.rows == 1);
  if (!y.spec.rows.whole_tensor() || !y.spec.cols.whole_tensor()) return false;
  if (stream.target().device == Device::cuda) return y.waits() && y.plain && y.shape[0] % side == 0 && y.shape[1] % side == 0;
  return to.rows ? to.one_matrix() : to.cols.transposed;
}

// Codes of the tokens in the form of an operand; the descale of a tensor is in its memory.
Sink encoded_tokens(Stream& stream, const Tensor& x, const QuantizeSpec& spec, const Quantized& like) {
  Sink out = make_sink(stream, spec, {.shape = x.shape, .dtype = x.dtype, .plain = x, .for_gemm = like.decoded});
  if (spec.rows.whole_tensor() && like.descales) out.codes.rows.descales = like.descales;
  check(out.codes.rows.codes.dtype == like.codes.dtype, "gather_encoded: operands of {} from codes of {}", like.codes.dtype,
        out.codes.rows.codes.dtype);
  quantize(stream, x, out);
  return out;
}

}  // namespace

void gather_encoded(Stream& stream, const Tensor& x, const ExpertMap& map, Sink& y) {
  check_expert_map("gather_encoded", map);
  if (!encodes_tokens(stream, map, y)) return gather_rows(stream, x, map, y);
  check(x.shape.rank == 2 && x.shape[0] == map.tokens() && x.dtype == y.dtype && y.shape == Shape{map.rows(), x.shape[1]},
        "gather_encoded: x must be {} [{}, C] for rows of {}, got {} {}", y.dtype, map.tokens(), y.shape, x.dtype, x.shape);
  const Scope scope(stream);
  const bool turns = y.codes.cols && !y.codes.cols.transposed;
  Quantized to = y.codes.rows ? y.codes.rows : y.codes.cols;
  if (turns && !y.codes.rows) to.codes = {y.plain.data, y.shape, y.spec.format};
  const Sink tokens = encoded_tokens(stream, x, y.spec, to);
  stream.count({.ops = 1, .bytes = double(tokens.codes.rows.codes.bytes() + to.codes.bytes())});
  OCTET_LAUNCH(stream, gather_codes, tokens.codes.rows, map, to);
  if (turns) transpose_codes(stream, to, y.codes.cols);
}

}  // namespace octet::ops
