#include "octet/train/step/choices.hpp"

#include <algorithm>
#include <cmath>

#include "octet/base/check.hpp"
#include "octet/data/python_text.hpp"

namespace octet::train {
namespace {

// log(exp(x[id]) / sum_i exp(x[i])) of `vocabulary` logits.
double log_probability(const float* x, std::int64_t vocabulary, std::int32_t id) {
  const double largest = *std::max_element(x, x + vocabulary);
  double sum = 0;
  for (std::int64_t i = 0; i < vocabulary; ++i) sum += std::exp(double(x[i]) - largest);
  return double(x[id]) - largest - std::log(sum);
}

std::int64_t characters(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return (std::uint8_t(c) & 0xC0) != 0x80; });
}

// A text with the tokens of the tokenizer's template around it, unless it begins with the begin token.
std::vector<std::int32_t> ids_of(const tokenizer::Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::int32_t> ids;
  tokenizer.encode(text, ids);
  if (!ids.empty() && tokenizer.empty_context() == ids.front()) return ids;
  const auto prefix = tokenizer.document_prefix(), suffix = tokenizer.document_suffix();
  ids.insert(ids.begin(), prefix.begin(), prefix.end()), ids.insert(ids.end(), suffix.begin(), suffix.end());
  return ids;
}

std::size_t largest_of(std::span<const double> values) { return std::size_t(std::ranges::max_element(values) - values.begin()); }

}  // namespace

double log_likelihood(Engine& e, std::span<const std::int32_t> ids, std::int64_t scored) {
  const std::int64_t n = std::int64_t(ids.size()) - 1, vocabulary = e.model->shape().vocabulary,
                     padded = e.model->shape().padded_vocabulary();
  check(scored >= 1 && scored <= n, "log_likelihood: {} of {} tokens cannot be scored", scored, ids.size());
  const Scope scope(e.stream);
  const Tensor tokens = e.stream.empty({n}, DType::i32), logits = e.stream.empty({scored, padded}, e.precision.activations());
  upload(e.stream, ids.data(), tokens);
  e.model->logits(e.stream, {.tokens = tokens, .sequence = n}, {}, scored, logits);
  std::vector<float> values(std::size_t(logits.count()));
  get_values(e.stream, logits, values.data());
  double sum = 0;
  for (std::int64_t t = 0; t < scored; ++t)
    sum += log_probability(values.data() + t * padded, vocabulary, ids[std::size_t(n - scored + 1 + t)]);
  return sum;
}

std::vector<EncodedChoice> encode_choices(const tokenizer::Tokenizer& tokenizer, const data::MultipleChoice& question,
                                          std::int64_t longest) {
  const auto begin = tokenizer.empty_context();
  const std::vector<std::int32_t> first = ids_of(tokenizer, data::stripped_behind(question.context));
  std::vector<EncodedChoice> out;
  for (const std::string& choice : question.choices) {
    EncodedChoice& to = out.emplace_back();
    if (question.context.empty()) tokenizer.encode(" " + choice, to.ids);
    else to.ids = ids_of(tokenizer, question.context + " " + choice);
    to.scored = std::int64_t(to.ids.size()) - (question.context.empty() ? 0 : std::int64_t(first.size()));
    if (to.scored == std::int64_t(to.ids.size())) {
      if (!begin) throw DataError("a question has no context, and the tokenizer has no token that could replace it; write a context");
      if (to.ids.empty() || to.ids.front() != *begin) to.ids.insert(to.ids.begin(), *begin);
      else --to.scored;
    }
    if (to.scored < 1 || to.scored > longest)
      throw DataError(format("the choice \"{}\" has {} tokens behind its context; a model of {} tokens scores 1 to as many",
                             printable(choice), to.scored, longest));
    if (std::int64_t(to.ids.size()) > longest + 1) to.ids.erase(to.ids.begin(), to.ids.end() - (longest + 1));
  }
  return out;
}

Chosen::Chosen(const data::MultipleChoice& question, std::span<const double> log_likelihoods) : likeliest(largest_of(log_likelihoods)) {
  std::vector<double> per_character;
  for (std::size_t i = 0; i < log_likelihoods.size(); ++i)
    per_character.push_back(log_likelihoods[i] / double(characters(question.choices[i])));
  likeliest_per_character = largest_of(per_character);
}

void ChoiceCounts::add(const data::MultipleChoice& question, const Chosen& chosen) {
  ++questions;
  right += chosen.likeliest == question.answer;
  right_per_character += chosen.likeliest_per_character == question.answer;
}

double standard_error(double share, std::int64_t n) { return n < 2 ? 0 : std::sqrt(share * (1 - share) / double(n - 1)); }

}  // namespace octet::train
