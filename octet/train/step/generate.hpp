#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "octet/tokenizer/tokenizer.hpp"
#include "octet/train/step/decoder.hpp"
#include "octet/train/step/sampling.hpp"

namespace octet::train {

/// How texts are continued.
struct Generation {
  Sampling sampling = {};
  std::uint64_t first_draw = 0;             // of sample(), for the first text; the next token takes the next draw
  std::int64_t tokens = 0;                  // at most so many for each text
  std::span<const std::int64_t> ends = {};  // ids that end a text
  bool (*stopped)() = nullptr;              // asked before each token whether to give up; alike on all ranks
};

/// Why a generated text ends.
enum class GenerationEnd : std::uint8_t { length, end_of_text, not_finite, stopped, cut };
/// "length", "end of text", "not finite": of the logits, "stopped", "stop string": the caller took no more.
std::string_view name(GenerationEnd);

/// The ids of `prompt` behind the tokenizer's prefix of a document; the separator of documents if these are none. Empty if the tokenizer
/// has no separator either.
std::vector<std::int32_t> prompt_ids(const tokenizer::Tokenizer&, const std::string& prompt);

/// Gets each token of a text as it is drawn. False: the text is complete.
using TakeToken = std::function<bool(std::size_t text, std::int32_t id)>;

/// Continues texts, none of which is empty, side by side: appends each token that is drawn and shows it to `take`. The token that ends a
/// text is not appended. Text i draws as if alone, from draw first_draw + i 2^44 on. Changes no state of the engine but the decoder's. All
/// ranks call it, with the same texts: the first group of those that divide each layer draws, and others compute only where ranks divide
/// weights of blocks.
std::vector<GenerationEnd> generate(Engine&, Decoder&, std::span<std::vector<std::int32_t>> texts, const Generation&,
                                    const TakeToken& take);
/// One text, by a decoder of its own that reads its last `longest` tokens.
GenerationEnd generate(Engine&, std::vector<std::int32_t>& ids, std::int64_t longest, const Generation&, const TakeToken& take);

}  // namespace octet::train
