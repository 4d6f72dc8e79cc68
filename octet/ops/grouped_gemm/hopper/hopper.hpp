#pragma once

// Only for files of the GPU backend: fast kernels for Hopper, one file per layout of operands (octet/ops/grouped_gemm/*.sm90a.cu). Each
// reads operands by TMA, which needs addresses and rows that are multiples of 16 bytes. Same operands, same bits.

#include "octet/ops/gemm/gemm.hpp"
#include "octet/ops/grouped_gemm/grouped_gemm.kernels.hpp"

namespace octet::cuda {

/// Groups along M. False, and nothing is done, for operands of other layouts, on other GPUs and where TMA cannot read them. Names say the
/// scales of `a`, then of the stack: 1x128 by 128x128; one per tensor or per row of each; none, of BF16.
bool rows_1x128_128x128(Queue, const ops::GroupedGemm&);
bool rows_tensor(Queue, const ops::GroupedGemm&);
bool rows_bf16(Queue, const ops::GroupedGemm&);
/// The same for groups along K.
bool columns_1x128_1x128(Queue, const ops::GroupedGemm&);
bool columns_tensor(Queue, const ops::GroupedGemm&);
bool columns_bf16(Queue, const ops::GroupedGemm&);

/// The same kernels for dense products, which are one group.
bool dense_1x128_128x128(Queue, const ops::Gemm&);
bool dense_1x128_1x128(Queue, const ops::Gemm&);
/// The same with the same bits, where pairs of blocks share columns of b: false for up to 256 rows. And where they share rows of `a`: false
/// where columns are no even number of tiles. Which one is the fastest depends on the shape.
bool dense_1x128_128x128_in_pairs(Queue, const ops::Gemm&);
bool dense_1x128_1x128_in_pairs(Queue, const ops::Gemm&);

}  // namespace octet::cuda
