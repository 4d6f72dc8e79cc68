#pragma once

#include <memory>

#include "octet/optim/optimizer_config.hpp"
#include "octet/optim/update.hpp"

namespace octet::optim {

/// ops::adamw of every slice. Weight decay acts on matrices, not on norms and biases. Slices may be parts. States: "m" and "v".
std::unique_ptr<Update> make_adamw(Stream&, const OptimizerConfig&, std::vector<UpdatedSlice>);

}  // namespace octet::optim
