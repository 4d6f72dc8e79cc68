#include "octet/python/open_model.hpp"

#include <algorithm>

#include "octet/tokenizer/stopped_text.hpp"
#include "octet/tokenizer/text_stream.hpp"
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

std::vector<std::vector<std::int32_t>> OpenModel::generate(std::vector<std::vector<std::int32_t>> texts, std::int64_t tokens,
                                                           const train::Sampling& sampling, const std::vector<std::string>& stops,
                                                           bool codes) {
  if (sampling.repetition_penalty <= 0) throw ConfigError("generate: repetition_penalty must be above 0; 1 has no effect");
  if (std::ranges::any_of(stops, &std::string::empty)) throw ConfigError("generate: an empty stop string begins every text; leave it out");
  std::size_t longest = 0;
  for (const std::vector<std::int32_t>& ids : texts) {
    trained::require_ids(std::vector<std::int64_t>(ids.begin(), ids.end()), vocabulary());
    if (ids.empty())
      throw ConfigError("generate: a prompt is empty, and the tokenizer has no token that could begin a text; give a prompt");
    longest = std::max(longest, ids.size());
  }
  if (texts.empty()) return {};
  if (std::int64_t(longest) > sequence_)
    throw ConfigError(
        format("generate: a prompt has {} tokens, but the model was opened for {}; open it with sequence={}", longest, sequence_, longest));
  const std::vector<std::int64_t> ends = wish_.end_ids(tokenizer());
  std::vector<std::vector<std::int32_t>> out(texts.size());
  std::vector<tokenizer::TextStream> shown;
  for (const std::vector<std::int32_t>& ids : texts) shown.emplace_back(tokenizer(), ids);
  std::vector<tokenizer::StoppedText> stopped(texts.size(), tokenizer::StoppedText(stops));
  begin();
  train::Decoder::Config config{.texts = std::int64_t(texts.size()), .longest = std::min(sequence_, std::int64_t(longest) + tokens)};
  if (codes) config.codes = DType::e4m3;
  const auto decoder = train::Decoder::make(*engine_, config);
  const std::vector<train::GenerationEnd> end =
      train::generate(*engine_, *decoder, texts, {.sampling = sampling, .tokens = tokens, .ends = ends, .stopped = train::stop_requested},
                      [&](std::size_t i, std::int32_t id) {
                        out[i].push_back(id);
                        if (!stops.empty()) stopped[i].next(shown[i].next(id));
                        return !stopped[i].stopped();
                      });
  if (std::ranges::find(end, train::GenerationEnd::not_finite) != end.end())
    throw DataError(format("{}: the model's logits are not finite: the weights are damaged, or their training diverged",
                           printable(wish_.source().folder)));
  return out;
}

train::Evaluation OpenModel::evaluate(trained::EvalSet set, const std::vector<std::string>& given, const std::string& recipe,
                                      std::int64_t calibration) {
  set.complete(wish_.folder, given);
  const data::Dataset dataset(set.token_folder(wish_.source().companions_folder), data::Verify::everything, set.key());
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
