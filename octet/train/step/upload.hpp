#pragma once

#include "octet/data/windows.hpp"
#include "octet/models/model.hpp"

namespace octet::train {

/// A batch of the loader on the stream's device, in a region.
models::TokenBatch upload(Stream&, const data::Batch&, Region);

}  // namespace octet::train
