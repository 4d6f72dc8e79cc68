#include "octet/cli/model_options.hpp"

#include "octet/models/chat_template.hpp"

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

void TextOptions::add_to(Command& command) {
  command.option("--data", data, "token folder, or text files; without it, those of the run's data.eval_path or data.path");
  command.option("--chat-template", chat_template,
                 "of text files with conversations: " + joined(models::ChatTemplate::names()) + "; without it, that of the model");
  command.option("--sequence", sequence, "tokens per sequence; of a run: its data.sequence_length", {.at_least = 1});
  command.option("--batch", batch, "sequences per batch", {.at_least = 1});
  command.option("--tokens", tokens, "tokens to evaluate on, spread over the text; 0: all; of a run: its train.eval_tokens",
                 {.at_least = 0});
  command.option("--held-out", fraction,
                 "share of the documents to evaluate on, chosen by a hash of their number; of a run: its data.eval_fraction",
                 {.at_least = 0, .at_most = 0.999});
  command.flag("--all", all, "evaluate on all documents");
  command.flag("--document-mask", document_mask, "a token reads only its own document; of a run: its data.document_mask");
}

}  // namespace octet::cli
