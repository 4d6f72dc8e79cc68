#pragma once

#include "octet/data/windows.hpp"
#include "octet/models/model.hpp"

namespace octet::train {

/// One of those that share sequences.
struct SequenceMember {
  int member = 0, members = 1;
};

/// A batch of the loader on the stream's device, in a region: the part of one member. Places of documents
/// are those in whole sequences. `ahead`: depths of tokens further on that it has.
models::TokenBatch upload(Stream&, const data::Batch&, Region, const SequenceMember& = {}, std::int64_t ahead = 0);

}  // namespace octet::train
