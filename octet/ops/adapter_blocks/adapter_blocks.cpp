#include "octet/ops/adapter_blocks/adapter_blocks.hpp"

#include <algorithm>

#include "octet/ops/adapter_blocks/adapter_blocks.kernels.hpp"

namespace octet::ops {
namespace {

RowBlocks checked(const char* op, std::span<const RowBlock> blocks, const Tensor& narrow, const Tensor& wide) {
  check(!blocks.empty() && blocks.size() <= most_row_blocks, "{}: {} blocks; there may be 1 to {}", op, blocks.size(), most_row_blocks);
  RowBlocks out{.count = int(blocks.size())};
  std::int64_t end = 0, rows = 0;
  for (const RowBlock& b : blocks) {
    check(b.first >= end && b.rows > 0, "{}: a block of rows {} to {} after one to {}", op, b.first, b.first + b.rows - 1, end - 1);
    end = b.first + b.rows, rows += b.rows;
  }
  std::ranges::copy(blocks, out.blocks);
  check(narrow.shape.rank == 2 && narrow.shape[0] == rows, "{}: blocks of {} rows together, got {}", op, rows, narrow.shape);
  check(wide.shape.rank == 2 && wide.shape[0] >= end && wide.shape[1] == narrow.shape[1] * out.count, "{}: wants [at least {}, {}], got {}",
        op, end, narrow.shape[1] * out.count, wide.shape);
  return out;
}

}  // namespace

void spread_blocks(Stream& stream, const Tensor& from, std::span<const RowBlock> blocks, float factor, const Tensor& to) {
  const RowBlocks all = checked("spread_blocks", blocks, from, to);
  check(is_activation(from.dtype) && from.dtype == to.dtype, "spread_blocks: wants one of f32, bf16 and f16, got {} and {}", from.dtype,
        to.dtype);
  stream.count({.ops = 1, .bytes = double(from.bytes() + to.bytes())});
  OCTET_LAUNCH(stream, spread_blocks, from, all, factor, to);
}

void collect_blocks(Stream& stream, const Tensor& from, std::span<const RowBlock> blocks, float factor, bool accumulate, const Tensor& to) {
  const RowBlocks all = checked("collect_blocks", blocks, to, from);
  check(from.dtype == DType::f32 && (to.dtype == DType::f32 || to.dtype == DType::bf16),
        "collect_blocks: wants f32, and f32 or bf16, got {} and {}", from.dtype, to.dtype);
  stream.count({.ops = 1, .bytes = 4.0 * double(to.count()) + (accumulate ? 2.0 : 1.0) * double(to.bytes())});
  OCTET_LAUNCH(stream, collect_blocks, from, all, factor, accumulate, to);
}

}  // namespace octet::ops
