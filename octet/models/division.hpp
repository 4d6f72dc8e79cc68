#pragma once

#include <string>

#include "octet/models/config.hpp"

namespace octet::models {

/// The first of these rules that n members break who divide each layer, such as "model.heads = 6 must be a multiple of it"; "" for none:
///
///   heads % n = 0,   kv_heads % n = 0 or n % kv_heads = 0,   hidden % n = 0,   padded vocabulary % n = 0 and at least 16 n
///
/// Members have copies of experts, so hidden counts where layers have an MLP instead.
/// Source: Shoeybi et al. 2019, "Megatron-LM", section 3.
std::string broken_division(const ModelShape&, std::int64_t n);

}  // namespace octet::models
