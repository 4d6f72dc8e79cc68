#pragma once

#include <functional>

#include "octet/base/error.hpp"
#include "octet/machine/ranks.hpp"

namespace octet::cli {

/// machine::on_ranks() for a subcommand: the exit code of this process, which has one rank, or threads of which the first one decides.
/// Where another rank tells of a lost one, this process ends without a line of its own.
ExitCode run_on_ranks(const machine::RankWish&, const std::function<ExitCode(comm::Communicator&, const machine::RankPlacement&)>& work);

}  // namespace octet::cli
