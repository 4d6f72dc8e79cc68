#pragma once

#include <memory>

#include "octet/optim/optimizer_config.hpp"
#include "octet/optim/update.hpp"

namespace octet::optim {

/// Of each matrix W [n, m], with gradient G after clipping, momentum mu, its state M, and rms = optim.muon.update_rms:
///
///   M = mu M + (1 - mu) G,   O = newton_schulz(mu M + (1 - mu) G) rms sqrt(max(n, m)),   W = W - learning_rate (O + weight_decay W)
///
/// The published M is 1 / (1 - mu) times this one; newton_schulz() ignores a factor of its argument. A parameter of rank 3 is as many
/// matrices as its first size, and each of these as many as Parameter::matrices. State: "m", rounded to nearest. Weights are stored as
/// ops::adamw does it, stochastically where it does. Products are of Target::gemm_compute on a CPU, and BF16 on a GPU. Source: Jordan et
/// al. 2024; the factor of O: Liu et al. 2025, "Muon is Scalable for LLM Training", section 2.2.
std::unique_ptr<Update> make_muon(Stream&, const OptimizerConfig&, std::vector<UpdatedSlice>);

/// Matrices whose gradient is one product: those of blocks. Embedding and head sum many.
bool takes_muon(const Parameter&);

}  // namespace octet::optim
