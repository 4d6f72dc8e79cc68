#include "octet/tensor/tensor.hpp"

namespace octet {

std::string to_text(const Shape& s) {
  std::string out = "[";
  for (int i = 0; i < s.rank; ++i) out += (i ? ", " : "") + std::to_string(s[i]);
  return out + "]";
}

std::string to_text(const ScaleBlock& b) {
  if (b.whole_tensor()) return "tensor";
  if (b.whole_rows()) return "row";
  if (b.whole_matrices()) return "matrix";
  return std::to_string(b.rows) + "x" + std::to_string(b.cols);
}

Tensor Tensor::rows(std::int64_t begin, std::int64_t n) const {
  check(shape.rank >= 1 && begin >= 0 && n >= 0 && begin + n <= shape[0], "rows: [{}, {}) is outside {}", begin, begin + n, shape);
  Tensor out = *this;
  out.shape.dims[0] = n;
  const auto stride = shape[0] == 0 ? 0 : shape.count() / shape[0];
  out.data = as<std::byte>() + std::size_t(begin * stride) * size_of(dtype);
  return out;
}

Tensor Tensor::reshaped(Shape s) const {
  check(s.count() == shape.count(), "reshaped: {} has not as many elements as {}", s, shape);
  Tensor out = *this;
  out.shape = s;
  return out;
}

Shape descale_shape(ScaleBlock b, DType dtype, std::int64_t rows, std::int64_t cols) {
  if (b.whole_tensor()) return {1};
  if (b.whole_rows()) return {rows};
  if (b.rows == 0 || b.cols == 0) return {b.cols == 0 ? ceil_div(rows, b.rows) : ceil_div(cols, b.cols)};
  check(b.rows > 0 && b.cols > 0, "descale_shape: no layout for blocks of {}", b);
  const auto row_blocks = ceil_div(rows, b.rows), col_blocks = ceil_div(cols, b.cols);
  if (dtype == DType::e8m0) return {round_up(row_blocks, 128), round_up(col_blocks, 4)};
  if (b.rows == 1) return {col_blocks, round_up(row_blocks, 4)};
  return {row_blocks, round_up(col_blocks, 4)};
}

DescaleStride descale_stride(ScaleBlock b, DType dtype, std::int64_t rows, std::int64_t cols) {
  if (b.whole_tensor()) return {0, 0};
  if (b.cols == 0) return {1, 0};
  if (b.rows == 0) return {0, 1};
  const Shape s = descale_shape(b, dtype, rows, cols);
  if (dtype != DType::e8m0 && b.rows == 1) return {1, s[1]};
  return {s[1], 1};
}

float value_at(const Tensor& t, std::int64_t i) {
  switch (t.dtype) {
    case DType::f32: return t.f32()[i];
    case DType::bf16: return to_float(t.bf16()[i]);
    case DType::f16: return to_float(t.f16()[i]);
    case DType::e4m3: return decode<E4M3>(t.u8()[i]);
    case DType::e5m2: return decode<E5M2>(t.u8()[i]);
    case DType::e8m0: return decode_e8m0(t.u8()[i]);
    default: unsupported_dtype("value_at", t.dtype, {DType::f32, DType::bf16, DType::f16, DType::e4m3, DType::e5m2, DType::e8m0});
  }
}

float value_at(const Quantized& q, std::int64_t r, std::int64_t c) {
  const float code = value_at(q.codes, q.transposed ? c * q.codes.shape[1] + r : r * q.codes.shape[1] + c);
  if (!q.descales) return code;
  const auto stride = descale_stride(q.block, q.descales.dtype, q.rows(), q.cols());
  const auto br = q.block.rows ? r / q.block.rows : 0, bc = q.block.cols ? c / q.block.cols : 0;
  return code * value_at(q.descales, br * stride.row_block + bc * stride.col_block);
}

}  // namespace octet
