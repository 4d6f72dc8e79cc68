#pragma once

#include <vector>

#include "octet/plan/job.hpp"
#include "octet/plan/software.hpp"

namespace octet::plan {

/// Matrix products of one layer and micro-batch on one GPU: `count` of them in one launch, y [rows, columns] from `inner` terms each, whose
/// results have so many bytes that are written, and read where they are added to. `exchanges`: tensor ranks gather its rows or sum its
/// results, piece by piece while it runs.
struct Product {
  double rows = 0, columns = 0, inner = 0, count = 1, result_bytes = 2;
  bool exchanges = false;

  double operations() const { return 2 * count * rows * columns * inner; }
};

/// Of all matrices but those of routed experts, forward and backward: y = x W^T, dx = dy W, and dW += dy^T x in FP32, for the tokens of a
/// tensor group.
std::vector<Product> dense_products(const PlannedModel&, const Layout&, double tokens);
/// Of the routed experts of a GPU in grouped products, on rows of the tokens that chose them: `load` times the mean of all GPUs, and half a
/// tile more per expert, since rows of an expert are padded to tiles of 128.
std::vector<Product> expert_products(const PlannedModel&, const Layout&, double tokens, double load);

/// The product of both inputs of a layer that predicts further tokens, for so many tokens of one GPU.
std::vector<Product> joining_products(const PlannedModel&, double tokens);

/// Operations at the rate of large products, half a wave of tiles that each launch leaves idle at its end, and passes over the results.
/// Narrow matrices and few tokens per expert have more of the latter two per operation.
double seconds_of(const std::vector<Product>&, const machine::MachineConstants&, double gain);

/// Of exchanges that take `seconds` one after the other, eight per layer, those that products do not hide: each runs beside its own product
/// alone, so exchanges of narrow matrices are exposed where those of wide ones are not. A share is exposed in any case.
double exposed_exchanges(const std::vector<Product>&, const machine::MachineConstants&, double gain, double seconds);

/// Of causal attention of one layer, for so many tokens of one GPU: 6 x sequence x columns operations per token. Short sequences are far
/// from the rate of long ones, and exponentials take as long for narrow heads as for wide ones.
double attention_seconds(const PlannedModel&, const Job&, const Layout&, double tokens);

/// Bytes per token and layer that copies of rows to experts and sums of their results read and write.
double bytes_of_rows(const PlannedModel&, const Software&);

}  // namespace octet::plan
