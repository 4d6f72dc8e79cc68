#include "octet/train/step/generate.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "octet/parallel/host_values.hpp"

namespace octet::train {
namespace {

// Ranks that divide each layer have equal numbers of tokens, in whole blocks of values if these travel in 8 bits. A GPU builds its kernels
// of attention in 8 bits for every length, so lengths have steps there.
std::int64_t tokens_together(Engine& e) {
  constexpr std::int64_t step = 128;
  const std::int64_t members = e.partition().members();
  if (members == 1 && e.precision.codes_attention() && e.stream.apart_from_host()) return step;
  return members == 1 ? 1 : members * storage_block / std::gcd(storage_block, e.model->shape().width);
}

// Logits of the token after `ids`. Later tokens, which no token sees, fill up those of all ranks.
std::vector<float> next_logits(Engine& e, std::span<const std::int32_t> ids) {
  const Scope scope(e.stream);
  std::vector<std::int32_t> filled(ids.begin(), ids.end());
  const std::int64_t own = std::int64_t(ids.size()), together = round_up(own, tokens_together(e));
  const bool fits = e.partition().divides() || together <= e.longest_sequence;
  filled.resize(std::size_t(fits ? together : own), 0);
  const std::int64_t n = std::int64_t(filled.size()), last = n - own + 1;
  const Tensor tokens = e.stream.empty({n}, DType::i32);
  const Tensor logits = e.stream.empty({last, e.model->shape().padded_vocabulary()}, e.precision.activations());
  upload(e.stream, filled.data(), tokens);
  const models::TokenBatch batch{.tokens = tokens, .sequence = n};
  e.pipeline.logits(batch, {}, last, logits);
  std::vector<float> out(std::size_t(e.model->shape().vocabulary));
  const HostCopy shown(e.stream, logits);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = value_at(shown.tensor(), std::int64_t(i));
  return out;
}

constexpr std::int64_t no_token = -1;

// Of rank 0; `no_token` where the logits are not finite.
std::int64_t next_token(Engine& e, std::span<const std::int32_t> window, const Sampling& sampling, std::uint64_t draw) {
  const bool draws = e.ranks().rank() == 0;
  std::int64_t next = no_token;
  if (draws || e.sharding.data_ranks_meet()) {
    const std::vector<float> logits = next_logits(e, window);
    if (draws && std::ranges::all_of(logits, [](float x) { return std::isfinite(x); })) next = sample(logits, sampling, draw);
  }
  return parallel::of_first(e.stream, e.ranks(), next);
}

}  // namespace

std::string_view name(GenerationEnd end) {
  constexpr std::string_view names[] = {"length", "end of text", "not finite", "stopped"};
  return names[std::size_t(end)];
}

std::vector<std::int32_t> prompt_ids(const tokenizer::Tokenizer& tokenizer, const std::string& prompt) {
  const auto prefix = tokenizer.document_prefix();
  std::vector<std::int32_t> ids(prefix.begin(), prefix.end());
  tokenizer.encode(prompt, ids);
  if (ids.empty() && tokenizer.document_separator()) ids.push_back(*tokenizer.document_separator());
  return ids;
}

GenerationEnd generate(Engine& e, std::vector<std::int32_t>& ids, const Generation& g, const std::function<void(std::int32_t)>& take) {
  for (std::int64_t i = 0; i < g.tokens; ++i) {
    if (g.stopped != nullptr && g.stopped()) return GenerationEnd::stopped;
    const std::size_t window = std::min(ids.size(), std::size_t(g.longest));
    const std::int64_t next = next_token(e, std::span(ids).last(window), g.sampling, g.first_draw + std::uint64_t(i));
    if (next == no_token) return GenerationEnd::not_finite;
    if (std::ranges::find(g.ends, next) != g.ends.end()) return GenerationEnd::end_of_text;
    ids.push_back(std::int32_t(next));
    take(std::int32_t(next));
  }
  return GenerationEnd::length;
}

}  // namespace octet::train
