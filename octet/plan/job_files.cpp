#include "octet/plan/job_files.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "octet/base/file.hpp"
#include "octet/base/folder.hpp"
#include "octet/config/write.hpp"
#include "octet/plan/dry_memory.hpp"
#include "octet/train/run/checkpoints/resume.hpp"

namespace octet::plan {
namespace {

// A word of a shell command, quoted where a shell would read more than its letters.
std::string shell_word(const std::string& text) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) || std::strchr("._-+/:@", c) != nullptr; };
  if (!text.empty() && std::ranges::all_of(text, plain)) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

}  // namespace

train::RunConfig run_with(const train::RunConfig& run, const Layout& l) {
  const train::Subject subject = train::subject_of(train::engine_config(run), l.data);
  if (const std::string why = sentence(first_broken(l, subject, {train::LayoutConstraint::Holds::here}), l, subject); !why.empty())
    throw ConfigError(format("{}: this version does not train it, because {}; so no run file is written: add --runnable", to_text(l), why));
  train::RunConfig out = run;
  set_ranks(out.ranks, l);
  out.train.batch = l.micro_batch, out.train.accumulate = train::sequences_per_step(run) / (l.micro_batch * l.sequence_groups());
  out.model.recompute = recompute_words(l.recomputed), out.model.recompute_layers = 0;
  out.optim.level = l.level;
  return out;
}

std::string sbatch_text(const std::string& name, const std::string& run_file, const Job& job) {
  const std::int64_t tasks = std::min(job.gpus, job.per_node()), nodes = ceil_div(job.gpus, tasks);
  std::string out = "#!/bin/bash\n";
  out += format("# {} GPUs, one task each. Written by octet plan; examples/slurm/README.md explains the lines.\n", job.gpus);
  for (const std::string& line : {format("job-name={}", shell_word(name)), format("nodes={}", nodes), format("ntasks-per-node={}", tasks),
                                  format("gpus-per-node={}", tasks), std::string("cpus-per-task=12"), std::string("exclusive"),
                                  std::string("mem=0"), std::string("wait-all-nodes=1"), std::string("time=04:00:00"),
                                  std::string("signal=USR1@180"), std::string("dependency=singleton"), std::string("output=%x-%j.out")})
    out += "#SBATCH --" + line + "\n";
  out += R"(set -euo pipefail
octet=${OCTET:-octet}
export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}  # srun does not inherit it
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
export NCCL_DEBUG=${NCCL_DEBUG:-WARN}

# Every node by itself: one that lacks a GPU or has a slow link ends the job here.
srun --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 --mpi=none --kill-on-bad-exit=1 \
  "$octet" doctor ${OCTET_PREFLIGHT:---expect-gpus "${SLURM_GPUS_ON_NODE:-0}"}

)";
  return out + format("srun --kill-on-bad-exit=0 \"$octet\" train {} --name \"$SLURM_JOB_NAME-$SLURM_JOB_ID\" ", shell_word(run_file)) +
         "${OCTET_ARGUMENTS:-}\n";
}

void write_job(const std::string& folder, const train::RunConfig& run, const Layout& l, const Job& job, Target target) {
  const train::RunConfig planned = run_with(run, l);
  // The engine refuses what else it does not train.
  train::dry_run(train::engine_config(planned), target, planned.train.batch, planned.train.accumulate);
  if (const int error = make_folders(folder); error != 0)
    throw IoError(format("--write {}: the folder cannot be made: {}", printable(folder), std::strerror(error)));
  const std::string file = folder + "/plan.toml";
  write_file(file, format("# {}. Written by octet plan.\n", to_text(l)) + config::to_toml(planned));
  write_file(folder + "/plan.sbatch", sbatch_text(run.name.empty() ? "octet" : run.name, file, job));
}

}  // namespace octet::plan
