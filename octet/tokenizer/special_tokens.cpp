#include "octet/tokenizer/special_tokens.hpp"

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"

namespace octet::tokenizer {

std::string special_token(const json::Value& tokenizer_config, std::string_view key) {
  const json::Value* token = tokenizer_config.find(key);
  if (token != nullptr && token->object() != nullptr) token = token->find("content");
  return token != nullptr && token->text() != nullptr ? *token->text() : "";
}

std::vector<std::int64_t> end_ids(const json::Value& config, const std::string& file) {
  const json::Value* value = config.find("eos_token_id");
  if (value == nullptr || value->is_null()) return {};
  std::vector<std::int64_t> ids;
  const json::Array* list = value->array();
  for (const json::Value& one : list != nullptr ? *list : json::Array{*value}) {
    if (!one.integer()) throw DataError(format("{}: eos_token_id must be an id or a list of ids; restore the file", printable(file)));
    ids.push_back(*one.integer());
  }
  return ids;
}

}  // namespace octet::tokenizer
