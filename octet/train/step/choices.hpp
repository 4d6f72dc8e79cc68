#pragma once

#include <span>
#include <vector>

#include "octet/data/multiple_choice.hpp"
#include "octet/tokenizer/tokenizer.hpp"
#include "octet/train/step/engine.hpp"

namespace octet::train {

/// The sum of the logarithms of the probabilities of the last `scored` tokens of `ids`, each after all before it. There is at least one
/// token before them. Changes no state of the engine, which has whole weights of all layers.
double log_likelihood(Engine&, std::span<const std::int32_t> ids, std::int64_t scored);

/// A context and one choice as ids: the choice's are those that the context's ids lack in the encoding of both together.
struct EncodedChoice {
  std::vector<std::int32_t> ids;
  std::int64_t scored = 0;
};
/// All choices of a question, each with at most `longest` + 1 ids, the last ones. Both encodings have the tokens that the tokenizer's
/// template adds. An empty context is Tokenizer::empty_context(). Blanks at the end of the context belong to the choice. Throws DataError
/// where a choice adds no token. Source: lm-evaluation-harness 0.4.13, lm_eval/api/model.py and lm_eval/models/huggingface.py.
std::vector<EncodedChoice> encode_choices(const tokenizer::Tokenizer&, const data::MultipleChoice&, std::int64_t longest);

/// The likeliest choice, and the likeliest per character (Unicode code point). Of equal ones the first.
struct Chosen {
  std::size_t likeliest = 0, likeliest_per_character = 0;
  Chosen(const data::MultipleChoice&, std::span<const double> log_likelihoods);
};
/// How many questions were answered rightly.
struct ChoiceCounts {
  std::int64_t questions = 0, right = 0, right_per_character = 0;
  void add(const data::MultipleChoice&, const Chosen&);
};
/// The standard error of a share of n questions.
double standard_error(double share, std::int64_t n);

}  // namespace octet::train
