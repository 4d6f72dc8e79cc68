#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/checksum.hpp"
#include "octet/json/text.hpp"
#include "octet/tensor/dtype.hpp"

namespace octet::models {

/// Beyond these a config.json is refused.
inline constexpr json::Limits config_limits{.bytes = std::size_t(16) << 20, .values = std::size_t(1) << 17};

/// The files of a Hugging Face folder beside its weights: config.json, generation_config.json and those of the tokenizer. A run and an
/// export hand them on, so that a model leaves Octet with the files that it came with.
struct Companions {
  struct File {
    std::string name, text;
  };
  std::string config;        // the text of config.json; empty: none
  std::vector<File> files;   // the others, by name
  std::string weights = {};  // the folder, if it has weights: those that a model does not compute with are handed on (kept_tensors.hpp)

  bool empty() const { return config.empty() && files.empty(); }
  /// The text of a file, or null.
  const std::string* find(std::string_view name) const;
};

/// Whether a file of that name is one of them, config.json apart: tokenizer.json, merges.txt, chat_template.jinja, ...
bool is_companion(std::string_view name);

/// Reads them from a folder that may lack all of them. A symbolic link is followed only in the layout of the Hugging Face cache. Throws
/// IoError; DataError naming the file when it is too large (config.json 16 MiB, others 64 MiB) or leads out of the folder.
Companions read_companions(const std::string& folder);
/// Writes them into a folder that exists. Throws IoError.
void write_companions(const std::string& folder, const Companions&);

/// XXH3-128 of the names and texts of all files.
data::Checksum checksum_of(const Companions&);

/// The type of a model's weights by config.json: BF16 where it says so; F32 for any other or none, since F32 holds F16 exactly.
DType weights_dtype(const Companions&);

/// The ids that end a generated text: eos_token_id of generation_config.json, or else of config.json, one id or a list; empty if there is
/// none. Throws DataError when it is anything else.
std::vector<std::int64_t> end_tokens(const Companions&);

/// The dropout probabilities above 0 in config.json, "attn_pdrop = 0.1, resid_pdrop = 0.1", or "": Octet trains without dropout.
std::string dropout_of(const Companions&);

/// Ids of a tokenizer's begin and end tokens.
struct SpecialTokens {
  std::optional<std::int64_t> begin, end;
};
/// By tokenizer_config.json and the added tokens of tokenizer.json; none where these do not say. Throws DataError when one of the two is
/// damaged.
SpecialTokens special_tokens(const Companions&);

}  // namespace octet::models
