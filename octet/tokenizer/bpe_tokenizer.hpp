#pragma once

#include <memory>
#include <mutex>

#include "octet/tokenizer/added_tokens.hpp"
#include "octet/tokenizer/bpe_model.hpp"
#include "octet/tokenizer/decoder.hpp"
#include "octet/tokenizer/normalizer.hpp"
#include "octet/tokenizer/pre_tokenizer.hpp"
#include "octet/tokenizer/template.hpp"
#include "octet/tokenizer/tokenizer.hpp"

namespace octet::tokenizer {

/// The tokenizer of a tokenizer.json: added tokens, normalizers, pre-tokenizers, byte pair encoding, template and decoders, with the ids of
/// PyPI `tokenizers`. As there, an added token is found in any text, also where the text was not meant to contain it.
class BpeTokenizer final : public Tokenizer {
 public:
  /// `source`: the file's bytes; `file`: its name in messages. Throws DataError.
  BpeTokenizer(std::string source, const std::string& file);
  ~BpeTokenizer() override;

  std::string_view name() const override { return name_; }
  std::int32_t vocab_size() const override { return std::int32_t(tokens_.size()); }
  std::optional<std::int32_t> document_separator() const override { return separator_; }
  std::optional<std::int32_t> empty_context() const override;
  std::span<const std::int32_t> document_prefix() const override { return template_.prefix; }
  std::span<const std::int32_t> document_suffix() const override { return template_.suffix; }
  std::size_t encode(std::string_view text, std::vector<std::int32_t>& ids, Position = Position::start) const override;
  std::string decode(std::span<const std::int32_t> ids) const override;
  std::size_t last_cut(std::string_view text) const override;
  std::string_view source() const override { return source_; }

  void set_separator(std::int32_t id) { separator_ = id; }
  void set_begin(std::int32_t id) { begin_ = id; }
  /// The id of a token of the vocabulary, or of an added one.
  std::optional<std::int32_t> id_of(std::string_view token) const;
  /// The token of an id as the file writes it; empty for an id without one.
  std::string_view token(std::int32_t id) const;
  const BpeModel& model() const { return *model_; }
  const std::vector<AddedToken>& added_tokens() const { return added_; }

 private:
  struct Work;
  class Lease;
  enum class Cuts : std::uint8_t { none, at_spaces, at_lines };

  void add_tokens(const std::string& file);
  Cuts possible_cuts() const;
  bool added_tokens_allow_cuts() const;
  void encode_section(std::string_view section, bool at_start, bool continued, Work&) const;

  std::string source_, name_, file_;
  std::vector<AddedToken> added_;
  Normalizers normalizers_;
  PreTokenizers pre_tokenizers_;
  std::unique_ptr<const BpeModel> model_;
  Template template_;
  Decoders decoders_;
  bool has_decoder_ = false;
  std::vector<std::string> tokens_;  // by id
  std::vector<bool> special_;        // by id
  TokenFinder raw_finder_, normalized_finder_;
  std::optional<std::int32_t> separator_, begin_;
  bool divides_at_marks_ = false;  // parts are divided before each mark of a space, which changes no ids
  Cuts cuts_ = Cuts::none;

  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Work>> idle_;  // guarded by mutex_: memory of threads that are not encoding
};

}  // namespace octet::tokenizer
