#pragma once

#include "octet/comm/communicator.hpp"
#include "octet/tensor/storage.hpp"

namespace octet::parallel {

// Sums over ranks with E4M3 codes on the wire, and a power-of-two scale per 128 values. Each rank encodes its values once, codes go
// all-to-all, the rank that owns a share decodes and adds them in FP32 in the order of ranks. No partial sum is rounded to 8 bits, so the
// error of a sum of independent values is the same at every number of ranks: 2.65% (root mean square), 3.75% with the encoded sum that goes
// back (4.0% at two ranks, where sums are often half way between codes). A rank sends 8.0625 bits per value and direction. NaN and infinity
// become NaN in every rank's sum.

/// to[i] = sum over ranks of from[rank * n + i]. from: f32 or bf16 [ranks * n]; to: f32, bf16 or e4m3 [n]; n is a multiple of 128.
/// Throws ContractError on other shapes or storages. Workspace: two bytes per value of `from`.
void eight_bit_reduce_scatter(Stream&, comm::Communicator&, const Tensor& from, const Stored& to);

/// The same of e4m3 codes, which are sent as they are. `to` may be the own part of `from`.
void eight_bit_reduce_scatter(Stream&, comm::Communicator&, const Stored& from, const Stored& to);

/// x[i] = sum over ranks of x[i], where the owner's sum is encoded, too: the same bits on every rank. x: f32 or bf16 of any count.
/// Workspace: two bytes per value.
void eight_bit_all_reduce(Stream&, comm::Communicator&, const Tensor& x);
/// The same for e4m3 codes, which are sent as they are.
void eight_bit_all_reduce(Stream&, comm::Communicator&, const Stored& x);

}  // namespace octet::parallel
