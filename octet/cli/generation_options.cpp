#include "octet/cli/generation_options.hpp"

namespace octet::cli {

void GenerationOptions::add_to(Command& command) {
  ModelOptions::add_to(command);
  command.option("--tokens", tokens, "tokens to generate at most", {.at_least = 1});
  command.option("--temperature", sampling.temperature, "0: always the most likely token", {.at_least = 0});
  command.option("--top-k", sampling.top_k, "draw from this many most likely tokens; 0: from all", {.at_least = 0});
  command.option("--top-p", sampling.top_p, "draw from the fewest most likely tokens that have this probability together",
                 {.at_least = 0, .at_most = 1});
  command.option("--repetition-penalty", sampling.repetition_penalty,
                 "above 1, tokens that the text has are less likely: their logits are divided by it, or multiplied below 0",
                 {.at_least = 0});
  command.option("--stop", stops, "end the text before this string; may be repeated");
  command.option("--seed", seed, "of the draws");
  command.option("--cache", cache,
                 "keys and values of earlier tokens: values, in BF16 or the type in which the model computes, or e4m3, codes with a scale "
                 "per token and head",
                 {.one_of = {"values", "e4m3"}});
  command.option("--tokenizer", tokenizer, "a tokenizer.json, a folder that has one, or byte; without it, the model folder's");
}

train::Generation GenerationOptions::generation(std::span<const std::int64_t> ends) const {
  train::Generation g{.sampling = sampling, .tokens = tokens, .ends = ends};
  g.sampling.seed = std::uint64_t(seed);
  return g;
}

train::Decoder::Config GenerationOptions::decoding(std::int64_t texts, std::int64_t longest) const {
  train::Decoder::Config c{.texts = texts, .longest = longest};
  if (cache == "e4m3") c.codes = DType::e4m3;
  return c;
}

void GenerationOptions::check_values() const {
  for (const std::string& s : stops)
    if (s.empty()) throw ConfigError("--stop is an empty string, which begins every text; give at least one character");
  if (sampling.repetition_penalty == 0) throw ConfigError("--repetition-penalty must be above 0; 1 has no effect");
}

void GenerationOptions::require_vocabulary(const tokenizer::Tokenizer& t) const {
  if (t.vocab_size() > source().shape.vocabulary)
    throw ConfigError(
        format("{} has {} tokens, the model {}; it was trained with another one", t.name(), t.vocab_size(), source().shape.vocabulary));
}

void GenerationOptions::refuse_logits() const {
  throw DataError(
      format("{}: the model's logits are not finite: the weights are damaged, or their training diverged; octet inspect shows them",
             printable(source().folder)));
}

}  // namespace octet::cli
