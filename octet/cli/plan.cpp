#include "octet/cli/run_options.hpp"
#include "octet/train/dry_run.hpp"
#include "octet/ops/machine/machine.hpp"
#include "octet/train/run_folder.hpp"

namespace octet::cli {
namespace {

ExitCode plan_run(const RunOptions& o) {
  const train::RunConfig c = o.config();
  const Device device = device_named(c.device);
  const train::EngineConfig engine = train::engine_config(c);
  const train::DryRun dry = train::dry_run(engine, machine_target(device, c.deterministic), c.train.batch, c.train.accumulate);
  std::printf("model    %s, %s parameters\n", c.model.size.c_str(), grouped(dry.parameters).c_str());
  std::printf("step     %s tokens = %lld x %lld sequences of %lld\n", grouped(c.tokens_per_step()).c_str(), (long long)c.train.accumulate,
              (long long)c.train.batch, (long long)c.data.sequence_length);
  std::printf("work     %.1f GFLOP a step (%.1f in GEMMs), %s of other memory traffic, %lld ops\n", dry.step.flops / 1e9, dry.step.gemm_flops / 1e9,
              bytes_text(dry.step.bytes).c_str(), (long long)dry.step.ops);
  std::printf("memory   %s at the peak, %s free here\n", bytes_text(double(dry.memory.total)).c_str(), bytes_text(double(available_bytes(device))).c_str());
  for (std::size_t i = 0; i < categories; ++i)
    if (dry.memory.by_category[i] != 0)
      std::printf("         %-18s %12s\n", std::string(name(Category(i))).c_str(), bytes_text(double(dry.memory.by_category[i])).c_str());
  if (dry.memory.host != 0) std::printf("         and %s of the host's memory (optim.offload)\n", bytes_text(double(dry.memory.host)).c_str());
  std::printf("layers\n%s", train::plan_text(dry.plan).c_str());
  train::require_native(dry, c.recipe);
  train::require_memory(dry, available_bytes(device), c.train);
  return ExitCode::done;
}

}  // namespace

void add_plan(Program& program) {
  auto o = std::make_shared<RunOptions>();
  Command command = program.command("plan", "Say what a run would need, without running it: memory, work, precision of each layer",
                                  "  octet plan --set model.size=llama-3-8b --fp8 block128 --set train.batch=1\n"
                                  "  octet plan run.toml\n"
                                  "Exit code 69: the run would not fit into this machine's memory, or its GPU does not multiply the recipe's codes.");
  o->add_to(command);
  command.run([o] { return plan_run(*o); });
}

}  // namespace octet::cli
