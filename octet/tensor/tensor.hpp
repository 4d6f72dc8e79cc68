#pragma once

#include <cstddef>

#include "octet/tensor/dtype.hpp"
#include "octet/tensor/shape.hpp"

namespace octet {

/// A contiguous, row-major, non-owning view. Cheap to copy; its arena owns the bytes.
/// On the null device `data` is an address that must not be read.
struct Tensor {
  void* data = nullptr;
  Shape shape;
  DType dtype = DType::f32;

  explicit operator bool() const { return data != nullptr; }
  std::int64_t count() const { return shape.count(); }
  std::size_t bytes() const { return std::size_t(shape.count()) * size_of(dtype); }
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  float* f32() const { return as<float>(); }
  Bf16* bf16() const { return as<Bf16>(); }
  Fp16* f16() const { return as<Fp16>(); }
  std::uint8_t* u8() const { return as<std::uint8_t>(); }

  /// Rows [begin, begin + n) of a tensor of rank 2, or elements of one of rank 1.
  Tensor rows(std::int64_t begin, std::int64_t n) const;
  /// The same values under another shape with as many elements.
  Tensor reshaped(Shape) const;
};

/// The values that share one scale: a [rows, cols] block of the tensor, 0 meaning all of them.
/// {0,0} the tensor, {1,0} a row, {1,128} and {128,128} blocks, {1,32} OCP MX. Of a stack of matrices [n, k], one after the other,
/// {n,0} is a matrix, and {0,n} one in the stack's transpose. A tensor is a stack of one.
struct ScaleBlock {
  int rows = 0, cols = 0;
  friend bool operator==(const ScaleBlock&, const ScaleBlock&) = default;
  bool whole_tensor() const { return rows == 0 && cols == 0; }
  bool whole_rows() const { return rows == 1 && cols == 0; }
  /// The tensor, or each matrix of a stack: a GEMM leaves the scale as a factor of its sums.
  bool whole_matrices() const { return (rows == 0 || cols == 0) && !whole_rows(); }
  /// The same values in the transpose.
  ScaleBlock transposed() const { return {cols, rows}; }
};
std::string to_text(const ScaleBlock&);  // "tensor", "row", "1x128", "matrix" of a stack

/// A GEMM operand: codes, and the factors that undo their scaling. x[r,c] ~= value(codes[r,c]) * descale(block of (r,c)).
/// Unscaled operands (f32, bf16) have no descales, and may be a transposed view: `codes` then is stored as [cols, rows].
/// A CPU's GEMM takes FP8 codes as transposed views, too, and `decoded` ones: their values in f32 or bf16, where that is exact. Descales
/// are multiplied into these, except a per-tensor descale that is not a power of two.
struct Quantized {
  Tensor codes;     // [rows, cols]; [cols, rows] when `transposed`
  Tensor descales;  // f32 or e8m0, in the layout of descale_shape(); empty for unscaled values
  ScaleBlock block;
  bool power_of_two = false;  // every descale is one: applying it is exact
  bool transposed = false;
  bool decoded = false;  // f32 or bf16 values of 8-bit codes

  explicit operator bool() const { return bool(codes); }
  bool eight_bit() const { return decoded || is_fp8(codes.dtype); }
  std::int64_t rows() const { return codes.shape[transposed ? 1 : 0]; }
  std::int64_t cols() const { return codes.shape[transposed ? 0 : 1]; }
};

/// One tensor in the orientations that its GEMMs read: `rows` [R, C] and `cols` [C, R], the transpose quantized along its own rows.
struct QTensor {
  Quantized rows, cols;

  /// Both are views of one matrix.
  bool one_matrix() const {
    return rows && cols && cols.transposed && cols.codes.dtype == rows.codes.dtype && cols.codes.data == rows.codes.data;
  }
};

/// Layout of the descales of a [rows, cols] operand, as the GEMMs of Hopper and Blackwell require it (padding included):
///   tensor      f32  [1]
///   row         f32  [rows]
///   1 x n       f32  [ceil(cols/n), round_up(rows, 4)]                 block-of-K major
///   128 x 128   f32  [ceil(rows/128), round_up(ceil(cols/128), 4)]
///   1 x n       e8m0 [round_up(rows, 128), round_up(ceil(cols/n), 4)]
/// Source: cuBLASLt, scale modes VEC128, BLK128x128 and VEC32_UE8M0 (before swizzling).
Shape descale_shape(ScaleBlock, DType descale_dtype, std::int64_t rows, std::int64_t cols);

/// Strides of that layout: the descale of block (i, j) is at i * row_block + j * col_block.
struct DescaleStride {
  std::int64_t row_block = 0, col_block = 0;
};
DescaleStride descale_stride(ScaleBlock, DType descale_dtype, std::int64_t rows, std::int64_t cols);

/// The exact value of one element: for tests, dumps and small tensors on the CPU.
float value_at(const Quantized&, std::int64_t row, std::int64_t col);
float value_at(const Tensor&, std::int64_t index);

}  // namespace octet
