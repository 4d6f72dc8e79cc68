#pragma once

#include "octet/ops/combine_rows/combine_rows.hpp"
#include "octet/tensor/backend.hpp"

OCTET_KERNEL(combine_rows, const Tensor& x, const ops::ExpertMap&, const Tensor& y, bool add)
