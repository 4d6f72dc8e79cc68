#pragma once

#include <cstdint>

#include "octet/io/gguf_writer.hpp"
#include "octet/models/companions.hpp"

namespace octet::models {

/// Adds the keys of a model's tokenizer, with `vocabulary` tokens: byte-level BPE ("gpt2") or BPE with marks for spaces and bytes
/// ("llama"). A model without tokenizer.json that has the vocabulary of the byte tokenizer gets that one. Throws ConfigError for a
/// tokenizer that llama.cpp does not have, naming the part, and DataError for a damaged one.
void add_tokenizer_keys(const Companions&, std::int64_t vocabulary, io::GgufKeys&);

}  // namespace octet::models
