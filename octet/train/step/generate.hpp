#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "octet/tokenizer/tokenizer.hpp"
#include "octet/train/step/engine.hpp"
#include "octet/train/step/sampling.hpp"

namespace octet::train {

/// How a text is continued.
struct Generation {
  Sampling sampling = {};
  std::uint64_t first_draw = 0;             // of sample(); the next token takes the next draw
  std::int64_t tokens = 0;                  // at most so many
  std::int64_t longest = 0;                 // the model reads this many last tokens
  std::span<const std::int64_t> ends = {};  // ids that end a text
  bool (*stopped)() = nullptr;              // asked before each token whether to give up; alike on all ranks
};

/// Why a generated text ends.
enum class GenerationEnd : std::uint8_t { length, end_of_text, not_finite, stopped };
/// "length", "end of text", "not finite": of the logits, "stopped".
std::string_view name(GenerationEnd);

/// The ids of `prompt` behind the tokenizer's prefix of a document; the separator of documents if these are none. Empty if the tokenizer
/// has no separator either.
std::vector<std::int32_t> prompt_ids(const tokenizer::Tokenizer&, const std::string& prompt);

/// Continues `ids`, which must not be empty: appends each token that is drawn and shows it to `take`. The token that ends the text is not
/// appended. Changes no state of the engine. All ranks call it: the first group of those that divide each layer draws, and others compute
/// only where ranks divide weights of blocks.
GenerationEnd generate(Engine&, std::vector<std::int32_t>& ids, const Generation&, const std::function<void(std::int32_t)>& take);

}  // namespace octet::train
