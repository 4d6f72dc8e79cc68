#pragma once

#include "octet/data/windows.hpp"
#include "octet/models/model.hpp"

namespace octet::train {

/// A batch of the loader on the stream's device, in a region: of `members` that share its sequences, the part of one. Places of documents
/// are those in whole sequences.
models::TokenBatch upload(Stream&, const data::Batch&, Region, int member = 0, int members = 1);

}  // namespace octet::train
