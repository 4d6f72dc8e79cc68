#pragma once

#include <memory>
#include <string>
#include <vector>

#include "octet/json/fields.hpp"

namespace octet::tokenizer {

/// Changes tokens into text: one entry of tokenizer.json's "decoder".
class Decoder {
 public:
  virtual ~Decoder() = default;
  /// May stop when the tokens have more than `most` bytes together.
  virtual void apply(std::vector<std::string>& tokens, std::size_t most) const = 0;
};

using Decoders = std::vector<std::unique_ptr<const Decoder>>;

/// The decoders of the object "decoder", Sequence resolved. Throws DataError for an unsupported type or key.
Decoders read_decoders(const json::Fields& fields, const std::string& file);

}  // namespace octet::tokenizer
