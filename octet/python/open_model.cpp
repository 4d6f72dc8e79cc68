#include "octet/python/open_model.hpp"

#include <algorithm>

#include "octet/train/run/ranks/stop.hpp"
#include "octet/train/step/generate.hpp"
#include "octet/trained/logits.hpp"

namespace octet::python {

void OpenModel::open() {
  if (sequence_ <= 0) sequence_ = std::min(max_sequence(), most_tokens);
  engine_ = wish_.load(sequence_);
}

const tokenizer::Tokenizer& OpenModel::tokenizer() {
  if (!tokenizer_) tokenizer_ = wish_.open_tokenizer("");
  return *tokenizer_;
}

void OpenModel::begin() {
  if (shared_) engine_->parameters.mark_changed();
}

std::vector<float> OpenModel::logits(std::span<const std::int32_t> ids, std::int64_t rows) {
  trained::require_ids(std::vector<std::int64_t>(ids.begin(), ids.end()), vocabulary());
  const std::int64_t length = std::int64_t(ids.size()) / std::max<std::int64_t>(rows, 1);
  if (length == 0) throw ConfigError("logits: there is no token; give one or more");
  if (length > sequence_)
    throw ConfigError(format("logits: {} tokens, but the model was opened for {}; open it with sequence={}", length, sequence_, length));
  begin();
  std::vector<float> out;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::vector<float> one = trained::logits_of(*engine_, ids.subspan(std::size_t(row * length), std::size_t(length)));
    out.insert(out.end(), one.begin(), one.end());
  }
  return out;
}

std::vector<std::int32_t> OpenModel::generate(std::vector<std::int32_t> ids, std::int64_t tokens, const train::Sampling& sampling) {
  trained::require_ids(std::vector<std::int64_t>(ids.begin(), ids.end()), vocabulary());
  if (ids.empty())
    throw ConfigError("generate: the prompt is empty, and the tokenizer has no token that could begin a text; give a prompt");
  const std::vector<std::int64_t> ends = wish_.end_ids(tokenizer());
  std::vector<std::int32_t> out;
  begin();
  const train::GenerationEnd end = train::generate(
      *engine_, ids, {.sampling = sampling, .tokens = tokens, .longest = sequence_, .ends = ends, .stopped = train::stop_requested},
      [&](std::int32_t id) { out.push_back(id); });
  if (end == train::GenerationEnd::not_finite)
    throw DataError(format("{}: the model's logits are not finite: the weights are damaged, or their training diverged",
                           printable(wish_.source().folder)));
  return out;
}

train::Evaluation OpenModel::evaluate(trained::EvalSet set, const std::vector<std::string>& given, const std::string& recipe,
                                      std::int64_t calibration) {
  set.complete(wish_.folder, given);
  const data::Dataset dataset(set.data, data::Verify::everything, set.key());
  data::require_same_tokenizer(dataset, wish_.source().companions_folder, vocabulary());
  data::require_vocabulary(dataset, vocabulary());
  const data::EvalBatches batches = set.batches(dataset);
  std::unique_ptr<train::Engine> other;
  const bool own = recipe.empty() || recipe == wish_.precision.recipe;
  if (!own || set.sequence > sequence_) {
    trained::TrainedModel wish = wish_;
    if (!own) wish.precision.recipe = recipe;
    other = wish.load(set.sequence);
  }
  train::Engine& engine = other ? *other : *engine_;
  begin();
  train::calibrate(engine, batches, std::uint64_t(calibration));
  const train::Evaluation out = train::evaluate(engine, batches, train::stop_requested);
  if (out.whole) trained::require_finite(engine, batches, out, wish_.source().folder);
  return out;
}

}  // namespace octet::python
