#pragma once

#include "octet/ops/route/route.hpp"
#include "octet/tensor/backend.hpp"

OCTET_KERNEL(route_forward, const ops::Routing&, const ops::RouteForward&)
OCTET_KERNEL(route_backward, const ops::Routing&, const ops::RouteBackward&)
/// Arguments have the length of sequences. strips: scratch of a GPU, f32 [2, S, strips of a sequence, E]; empty on a CPU.
OCTET_KERNEL(route_load, const ops::RouteLoad&, const Tensor& strips)
