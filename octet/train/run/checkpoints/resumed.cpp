#include "octet/train/run/checkpoints/resumed.hpp"

#include "octet/machine/machine.hpp"
#include "octet/parallel/long_work.hpp"
#include "octet/train/run/folder/foreign_folder.hpp"
#include "octet/train/run/checkpoints/resume.hpp"

namespace octet::train {

Resumed resumed_run(const std::string& folder, const RunConfig& config, const Corpus& corpus, RunRanks& ranks) {
  Resumed out{.folder = folder, .precision = {config.recipe.recipe}};
  if (folder.empty()) return out;
  const CheckpointStore store(checkpoint_folder(folder));
  std::vector<std::string> damaged;
  const Device device = machine::device_named(config.device);
  Stream stream(device, machine::machine_target(device));
  parallel::work_of_first(stream, ranks.all(), [&] { require_no_links(folder), out.held = HeldFolder(folder); });
  out.checkpoint = newest_good(stream, ranks.all(), store, &damaged);
  for (const auto& sentence : damaged) out.told.emplace_back("checkpoint", sentence);
  if (!out.checkpoint) return out;
  const std::string path = store.path(out.checkpoint->step);
  require_same_run(config, to_text(corpus.fingerprint()), *out.checkpoint, path);
  out.precision = precision_of(*out.checkpoint, path);
  return out;
}

}  // namespace octet::train
