#include "octet/trained/eval_set.hpp"

#include <algorithm>
#include <cmath>

#include "octet/base/path.hpp"
#include "octet/config/read.hpp"
#include "octet/data/text_files.hpp"
#include "octet/telemetry/run_facts.hpp"
#include "octet/train/run/config/run_config.hpp"
#include "octet/train/run/config/token_folders.hpp"
#include "octet/train/step/nonfinite.hpp"

namespace octet::trained {

std::string run_folder_of(const std::string& model) {
  for (const char* up : {"", "/..", "/../.."})
    if (exists(model + up + "/run.json") && exists(model + up + "/config.toml")) return model + up;
  return "";
}

namespace {

// The token folder that the run made of its text, if it is there.
std::string tokens_of(const std::string& run, const std::string& path) {
  if (!data::names_text(path)) return path;
  const std::string made = telemetry::read_run_facts(run + "/run.json").data.folder;
  return !made.empty() && is_folder(made) ? made : path;
}

}  // namespace

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
    else if (data.empty()) data = tokens_of(folder, run.data.path), key_ = "data.path";
    if (!is_given("--chat-template")) chat_template = run.data.chat_template;
    output_ = run.output;
  }
  if (!is_given("--document-mask") && train::names_conversations(data)) document_mask = true;
  if (data.empty()) throw ConfigError("--data is missing: name a token folder, or a model in the folder of a run");
}

std::string EvalSet::token_folder(const std::string& model_files) const {
  return train::TokenFolders{.model = model_files, .chat_template = chat_template, .output = output_}.of(data, key_);
}

// Overflow in a norm makes zeros, whose loss is that of equal probabilities: it says nothing about the model.
void require_finite(train::Engine& engine, const data::EvalBatches& batches, const train::Evaluation& e, const std::string& model) {
  const std::string norm = train::overflowing_norm(engine, batches[0]);
  if (norm.empty() && std::isfinite(e.loss)) return;
  throw DataError(format("{}: {} not finite, so there is no loss: the weights are damaged or of another scale; fetch the model again",
                         printable(model), norm.empty() ? "the loss is" : "the values before " + norm + ", or their squares, are"));
}

data::EvalBatches EvalSet::batches(const data::Dataset& dataset) const {
  const data::TokenRanges part = all ? data::TokenRanges{{0, dataset.token_count()}} : data::split_documents(dataset, fraction).held_out;
  const char* const name = all ? "whole" : "held-out";
  const data::Windows windows(dataset, part, sequence, name, document_mask ? data::Documents::masked : data::Documents::joined);
  data::EvalBatches out(windows, batch, tokens);
  data::require_targets(out, dataset, name);
  return out;
}

}  // namespace octet::trained
