#include "octet/cli/model_options.hpp"

namespace octet::cli {

void ModelOptions::add_to(Command& command) {
  add_source_to(command);
  std::vector<std::string_view> names;
  for (const auto& entry : scaling::recipes()) names.push_back(entry.name);
  command.option("--recipe", precision.recipe, "precision of the linear layers: " + joined(names));
  command.option("--format", precision.options.format, "8-bit formats: default, hybrid or e4m3", {.one_of = {"default", "hybrid", "e4m3"}});
  command.option("--head", head, "precision of the projection to the vocabulary: bf16 or recipe", {.one_of = {"bf16", "recipe"}});
  command.option("--device", device, "auto (the GPU where there is one), cpu or gpu", {.one_of = {"auto", "cpu", "gpu"}});
  command.option("--threads", threads, "threads to compute with; 0: one for each processor", {.at_least = 0, .at_most = 256});
}

void ModelOptions::add_source_to(Command& command) {
  command.positional("model", folder, "Hugging Face folder, checkpoint, or the folder of a run", true);
  command.option("--step", step, "of a run: the checkpoint of this step; without it, the newest one", {.at_least = 0});
}

}  // namespace octet::cli
