#pragma once

#include <string>

#include "octet/plan/search.hpp"

namespace octet::plan {

/// A layout in words: "tensor=4,pipeline=4,schedule=1f1b,zero=1,batch=2". Keys: tensor, pipeline, context, data, experts (ranks), schedule,
/// chunks, zero, batch (sequences of a micro-batch), recompute (none, norms, block), level. Data ranks that are not given are the rest of
/// the GPUs. Throws ConfigError with the keys for another one, for a value that it cannot have, and where the axes are not the GPUs.
Layout layout_in_words(const std::string& words, const Question&);

/// Its prediction, whether it fits or not. Throws ConfigError with the rule that it breaks in every program.
Candidate assess(const Layout&, const Question&, MemorySource&);

}  // namespace octet::plan
