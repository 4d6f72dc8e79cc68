#pragma once

#include <memory>

#include "octet/comm/communicator.hpp"
#include "octet/train/run/config/corpus.hpp"

namespace octet::train {

/// The texts of a run, of which text files become token folders first (token_folders.hpp). All ranks call it. Throws as these do.
std::unique_ptr<const Corpus> open_corpus(const RunConfig&, comm::Communicator&);

}  // namespace octet::train
