#pragma once

#include <cstdint>
#include <vector>

#include "octet/json/fields.hpp"

namespace octet::tokenizer {

/// Ids that a tokenizer adds before and after a text.
struct Template {
  std::vector<std::int32_t> prefix, suffix;
};

/// The object "post_processor": ByteLevel, which changes no ids, TemplateProcessing, or a Sequence of them. Throws DataError for an
/// unsupported type or key, or a template for one text that is not special tokens around it.
Template read_template(const json::Fields& fields, std::int32_t vocab_size);

}  // namespace octet::tokenizer
