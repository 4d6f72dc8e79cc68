#pragma once

#include "octet/tensor/stream.hpp"

namespace octet::optim {

/// out = an approximation of U V^T, with x = U S V^T the singular value decomposition: 10 steps X <- a X + b (X X^T) X + c (X X^T)^2 X from
/// X = x / |x|, 8 with (3.4445, -4.7750, 2.0315) and 2 with (2, -1.5, 0.5). x and out: f32 [n, m]; a matrix of zeros gives zeros. GEMMs
/// read and write `compute`, f32 or bf16. Source: Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks", and
/// DeepSeek-AI 2026, "DeepSeek-V4". Workspace, from scratch, in `compute`: 2 n m + 3 min(n, m)^2.
void newton_schulz(Stream&, const Tensor& x, const Tensor& out, DType compute);

}  // namespace octet::optim
