#pragma once

#include <string>

#include "octet/plan/search.hpp"
#include "octet/train/run/config/run_config.hpp"

namespace octet::plan {

/// The run's configuration with the layout's keys. Throws ConfigError that names the axes, if this version does not train it.
train::RunConfig run_with(const train::RunConfig&, const Layout&);

/// A Slurm script that trains `run_file` on the job's nodes, one task per GPU. Source: reference on parallel layouts, section 8;
/// examples/slurm/ has variants.
std::string sbatch_text(const std::string& name, const std::string& run_file, const Job&);

/// Writes plan.toml and plan.sbatch into `folder`, which is created. Throws as run_with(), as an engine on
/// `target` that refuses the run, and IoError.
void write_job(const std::string& folder, const train::RunConfig&, const Layout&, const Job&, Target);

}  // namespace octet::plan
