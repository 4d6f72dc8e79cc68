#include "octet/cli/eval_set.hpp"

#include <algorithm>

#include "octet/base/path.hpp"
#include "octet/config/read.hpp"
#include "octet/train/run/config/run_config.hpp"

namespace octet::cli {

void EvalSet::add_to(Command& command) {
  command.option("--data", data, "token folder; without it, that of the run's data.eval_path or data.path");
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

std::string run_folder_of(const std::string& model) {
  for (const char* up : {"", "/..", "/../.."})
    if (exists(model + up + "/run.json") && exists(model + up + "/config.toml")) return model + up;
  return "";
}

void EvalSet::complete(const std::string& model, const std::vector<std::string>& given) {
  const auto is_given = [&](const char* option) { return std::ranges::find(given, option) != given.end(); };
  if (all && is_given("--held-out")) throw ConfigError("--all evaluates on every document and --held-out on a share; leave one out");
  if (const std::string folder = run_folder_of(model); !folder.empty()) {
    train::RunConfig run;
    config::read_toml_file(folder + "/config.toml", run, config::Written::by_program);
    if (!is_given("--sequence")) sequence = run.data.sequence_length;
    if (!is_given("--tokens") && !all) tokens = run.train.eval_tokens;
    if (!is_given("--held-out")) fraction = run.data.eval_fraction;
    if (!is_given("--document-mask")) document_mask = run.data.document_mask;
    if (data.empty() && !run.data.eval_path.empty()) data = run.data.eval_path, key_ = "data.eval_path", all = !is_given("--held-out");
    else if (data.empty()) data = run.data.path, key_ = "data.path";
  }
  if (data.empty()) throw ConfigError("--data is missing: name a token folder, or a model in the folder of a run");
}

data::EvalBatches EvalSet::batches(const data::Dataset& dataset) const {
  const data::TokenRanges part = all ? data::TokenRanges{{0, dataset.token_count()}} : data::split_documents(dataset, fraction).held_out;
  const data::Windows windows(dataset, part, sequence, all ? "whole" : "held-out",
                              document_mask ? data::Documents::masked : data::Documents::joined);
  return data::EvalBatches(windows, batch, tokens);
}

}  // namespace octet::cli
