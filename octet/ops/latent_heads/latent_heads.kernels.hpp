#pragma once

#include "octet/ops/latent_heads/latent_heads.hpp"
#include "octet/tensor/backend.hpp"

OCTET_KERNEL(latent_heads_forward, const ops::LatentArguments&)
OCTET_KERNEL(latent_heads_backward, const ops::LatentArguments&)
