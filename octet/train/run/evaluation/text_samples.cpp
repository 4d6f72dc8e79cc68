#include "octet/train/run/evaluation/text_samples.hpp"

#include "octet/tokenizer/text_stream.hpp"
#include "octet/train/step/generate.hpp"

namespace octet::train {
namespace {

constexpr std::uint64_t draws_per_step = std::uint64_t(1) << 20;  // more than a sample has tokens

}  // namespace

TextSamples::TextSamples(const RunConfig& c, const data::Dataset& data)
    : config_(c.train), seed_(std::uint64_t(c.seed)), longest_(c.data.sequence_length) {
  if (config_.sample_every == 0) return;
  tokenizer_ = data.open_tokenizer();
  prompt_ = prompt_ids(*tokenizer_, config_.sample_prompt);
  if (prompt_.empty())
    throw ConfigError("train.sample_prompt is empty, and the tokenizer has no token that could begin a text; set train.sample_prompt");
  if (const auto separator = tokenizer_->document_separator()) ends_.push_back(*separator);
}

bool TextSamples::due(const Progress& at) const {
  return tokenizer_ && at.step > 0 && at.step % config_.sample_every == 0 && at.last_sample.step != at.step;
}

void TextSamples::take_if_due(Engine& engine, RunRanks& ranks, Recorder& recorder, Progress& at) {
  if (!due(at)) return;
  std::vector<std::int32_t> ids = prompt_;
  tokenizer::TextStream text(*tokenizer_, prompt_);
  telemetry::SampleEvent e{.step = at.step, .prompt = config_.sample_prompt};
  const Generation g{.sampling = {.temperature = config_.sample_temperature, .seed = seed_},
                     .first_draw = std::uint64_t(at.step) * draws_per_step,
                     .tokens = config_.sample_tokens,
                     .ends = ends_,
                     .stopped = ranks.stopped_in_step()};
  const GenerationEnd end = generate(engine, ids, longest_, g, [&](std::size_t, std::int32_t id) {
    e.text += text.next(id), ++e.tokens;
    return true;
  });
  if (end == GenerationEnd::stopped) return;  // a resumed run takes it
  at.last_sample.step = at.step;
  e.text += text.finish(), e.end = name(end);
  recorder.sample(std::move(e));
}

}  // namespace octet::train
