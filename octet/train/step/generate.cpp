#include "octet/train/step/generate.hpp"

#include <algorithm>

#include "octet/parallel/host_values.hpp"

namespace octet::train {
namespace {

using Texts = std::span<std::vector<std::int32_t>>;

constexpr std::int64_t no_token = -1;
constexpr std::uint64_t draws_of_text = std::uint64_t(1) << 44;

// Of rank 0; `no_token` where the logits are not finite.
std::int64_t next_token(std::vector<float> logits, std::span<const std::int32_t> text, const Sampling& sampling, std::uint64_t draw) {
  if (!are_finite(logits)) return no_token;
  penalize(logits, text, sampling.repetition_penalty);
  return sample(logits, sampling, draw);
}

// The next token after each text. Where tokens are drawn, of a rank that does not draw: no_token.
std::vector<std::int64_t> tokens_after(Decoder& decoder, std::span<const std::span<const std::int32_t>> texts, const Generation& g,
                                       std::uint64_t number, bool draws) {
  if (g.sampling.takes_most_likely()) {
    const std::vector<std::int32_t> ids = decoder.most_likely(texts);
    return {ids.begin(), ids.end()};
  }
  std::vector<std::vector<float>> logits = decoder.logits(texts);
  std::vector<std::int64_t> out(texts.size(), no_token);
  if (!draws) return out;
  for (std::size_t i = 0; i < texts.size(); ++i)
    if (!texts[i].empty()) out[i] = next_token(std::move(logits[i]), texts[i], g.sampling, g.first_draw + i * draws_of_text + number);
  return out;
}

// The next token of each text that is not complete.
std::vector<std::int64_t> next_tokens(Engine& e, Decoder& decoder, Texts texts, const std::vector<bool>& continues, const Generation& g,
                                      std::uint64_t number) {
  std::vector<std::int64_t> out(texts.size(), no_token);
  const bool draws = e.ranks().rank() == 0;
  if (draws || e.sharding.data_ranks_meet()) {
    std::vector<std::span<const std::int32_t>> read;
    for (std::size_t i = 0; i < texts.size(); ++i)
      read.push_back(continues[i] ? std::span<const std::int32_t>(texts[i]) : std::span<const std::int32_t>());
    out = tokens_after(decoder, read, g, number, draws);
  }
  for (std::size_t i = 0; i < texts.size(); ++i)
    if (continues[i]) out[i] = parallel::of_first(e.stream, e.ranks(), out[i]);
  return out;
}

// Nothing: the text continues.
std::optional<GenerationEnd> take_token(std::vector<std::int32_t>& text, std::size_t i, std::int64_t next, const Generation& g,
                                        const TakeToken& take) {
  if (next == no_token) return GenerationEnd::not_finite;
  if (std::ranges::find(g.ends, next) != g.ends.end()) return GenerationEnd::end_of_text;
  text.push_back(std::int32_t(next));
  if (!take(i, std::int32_t(next))) return GenerationEnd::cut;
  return {};
}

}  // namespace

std::string_view name(GenerationEnd end) {
  constexpr std::string_view names[] = {"length", "end of text", "not finite", "stopped", "stop string"};
  return names[std::size_t(end)];
}

std::vector<std::int32_t> prompt_ids(const tokenizer::Tokenizer& tokenizer, const std::string& prompt) {
  const auto prefix = tokenizer.document_prefix();
  std::vector<std::int32_t> ids(prefix.begin(), prefix.end());
  tokenizer.encode(prompt, ids);
  if (ids.empty() && tokenizer.document_separator()) ids.push_back(*tokenizer.document_separator());
  return ids;
}

std::vector<GenerationEnd> generate(Engine& e, Decoder& decoder, Texts texts, const Generation& g, const TakeToken& take) {
  std::vector<GenerationEnd> ends(texts.size(), GenerationEnd::length);
  std::vector<bool> continues(texts.size(), true);
  for (std::int64_t n = 0; n < g.tokens && std::ranges::find(continues, true) != continues.end(); ++n) {
    if (g.stopped != nullptr && g.stopped()) {
      for (std::size_t i = 0; i < texts.size(); ++i)
        if (continues[i]) ends[i] = GenerationEnd::stopped;
      break;
    }
    const std::vector<std::int64_t> next = next_tokens(e, decoder, texts, continues, g, std::uint64_t(n));
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (!continues[i]) continue;
      if (const auto end = take_token(texts[i], i, next[i], g, take)) ends[i] = *end, continues[i] = false;
    }
  }
  return ends;
}

GenerationEnd generate(Engine& e, std::vector<std::int32_t>& ids, std::int64_t longest, const Generation& g, const TakeToken& take) {
  const auto decoder = Decoder::make(e, {.longest = std::min(longest, std::int64_t(ids.size()) + g.tokens)});
  return generate(e, *decoder, std::span(&ids, 1), g, take).front();
}

}  // namespace octet::train
