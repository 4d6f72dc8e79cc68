#pragma once

#include "octet/ops/visits/visits.hpp"
#include "octet/ops/visits/visits.math.hpp"
#include "octet/tensor/backend.hpp"

OCTET_KERNEL(visited_members, const Tensor& chosen, const Tensor& visited, const ops::VisitSizes&)
OCTET_KERNEL(pack_choices, const ops::PackedChoices&, const Tensor& from, const ops::VisitSizes&)
OCTET_KERNEL(unpack_weights, const ops::PackedChoices&, const Tensor& to, const ops::VisitSizes&)
