#pragma once

#include "octet/cli/model_options.hpp"
#include "octet/tokenizer/stopped_text.hpp"
#include "octet/tokenizer/text_stream.hpp"
#include "octet/train/step/generate.hpp"

namespace octet::cli {

/// A model that continues texts, by the options of a subcommand.
struct GenerationOptions : ModelOptions {
  std::string tokenizer, cache = "values";
  std::int64_t tokens = 200, seed = 1;
  train::Sampling sampling;
  std::vector<std::string> stops;

  void add_to(Command&);
  /// The wishes for each text. `ends` outlives it.
  train::Generation generation(std::span<const std::int64_t> ends) const;
  /// How a decoder of so many texts stores keys.
  train::Decoder::Config decoding(std::int64_t texts, std::int64_t longest) const;
  /// Throws ConfigError if there are stop strings without a character, or the penalty is 0.
  void check_values() const;
  /// Throws ConfigError if the tokenizer has more tokens than the model.
  void require_vocabulary(const tokenizer::Tokenizer&) const;
  /// Throws DataError: the model's logits are not finite.
  [[noreturn]] void refuse_logits() const;
};

/// The text of generated tokens, up to the first stop string.
class GeneratedText {
 public:
  GeneratedText(const tokenizer::Tokenizer& tokenizer, std::span<const std::int32_t> before, const std::vector<std::string>& stops)
      : text_(tokenizer, before), stopped_(stops) {}
  /// The text that this token adds and that may be shown.
  std::string next(std::int32_t id) { return stopped_.next(text_.next(id)); }
  std::string finish() {
    std::string rest = stopped_.next(text_.finish());
    return rest + stopped_.finish();
  }
  bool stopped() const { return stopped_.stopped(); }

 private:
  tokenizer::TextStream text_;
  tokenizer::StoppedText stopped_;
};

}  // namespace octet::cli
