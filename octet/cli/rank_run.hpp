#pragma once

#include <functional>

#include "octet/base/error.hpp"
#include "octet/machine/ranks.hpp"
#include "octet/parallel/ranks_config.hpp"

namespace octet::cli {

/// The ranks that a run of this configuration wishes for: all axes together, or 0 for as many as a launcher has started.
std::int64_t ranks_to_start(const parallel::RanksConfig&);

/// machine::on_ranks() for a subcommand: the exit code of this process, which has one rank, or threads of which the first one decides.
/// Where another rank tells of a lost one, this process ends without a line of its own.
ExitCode run_on_ranks(const machine::RankWish&, const std::function<ExitCode(comm::Communicator&, const machine::RankPlace&)>& work);

}  // namespace octet::cli
