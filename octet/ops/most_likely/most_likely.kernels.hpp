#pragma once

#include "octet/ops/most_likely/most_likely.hpp"
#include "octet/tensor/backend.hpp"

OCTET_KERNEL(most_likely, const ops::MostLikely&)
