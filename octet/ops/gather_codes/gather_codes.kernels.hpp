#pragma once

#include "octet/ops/gather_codes/gather_codes.hpp"
#include "octet/tensor/backend.hpp"

/// to[r] = from[t] for the token t of row r, codes and the descales of rows; the codes of zeros for rows without one. Both are [rows, C] in
/// memory, with the same blocks.
OCTET_KERNEL(gather_codes, const Quantized& from, const ops::ExpertMap&, const Quantized& to)
