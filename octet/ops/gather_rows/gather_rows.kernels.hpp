#pragma once

#include "octet/ops/gather_rows/gather_rows.hpp"
#include "octet/tensor/backend.hpp"

OCTET_KERNEL(gather_rows, const Tensor& x, const ops::ExpertMap&, const ops::Sink& y)
