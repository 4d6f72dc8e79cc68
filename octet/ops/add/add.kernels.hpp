#pragma once

#include "octet/tensor/backend.hpp"
#include "octet/tensor/tensor.hpp"

OCTET_KERNEL(add, const Tensor& a, const Tensor& b, const Tensor& out)
