#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "octet/json/value.hpp"

namespace octet::tokenizer {

/// The text of a special token in a tokenizer_config.json: the value of `key` ("eos_token"), a string or an object with its content. ""
/// if there is none.
std::string special_token(const json::Value& tokenizer_config, std::string_view key);

/// The eos_token_id of a config.json or generation_config.json, one id or a list; empty if there is none. Throws DataError, which names
/// `file`, when it is anything else.
std::vector<std::int64_t> end_ids(const json::Value& config, const std::string& file);

}  // namespace octet::tokenizer
