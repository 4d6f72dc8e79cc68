#pragma once

#include "octet/ops/norm_parts/norm_parts.hpp"
#include "octet/tensor/backend.hpp"

OCTET_KERNEL(norm_squares, const ops::NormSquares&)
OCTET_KERNEL(norm_products, const ops::NormProducts&)
OCTET_KERNEL(norm_factors, const ops::NormOfSums&)
OCTET_KERNEL(norm_means, const ops::NormOfSums&)
