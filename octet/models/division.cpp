#include "octet/models/division.hpp"

#include <utility>

#include "octet/base/text.hpp"

namespace octet::models {

std::string broken_division(const ModelShape& s, std::int64_t n) {
  constexpr std::int64_t least_tokens = 16;  // of a part of the vocabulary: padding alone would be no part
  const auto multiple = [&](const char* name, std::int64_t value) {
    return value % n == 0 ? "" : format("{} = {} must be a multiple of it", name, value);
  };
  const std::int64_t tokens = s.padded_vocabulary();
  if (const std::string fault = multiple("model.heads", s.heads); !fault.empty()) return fault;
  if (s.kv_heads % n != 0 && n % s.kv_heads != 0) return format("model.kv_heads = {} must be a multiple or a divisor of it", s.kv_heads);
  const bool has_mlps = s.experts.layers_before(s.layers) < s.layers;
  for (const auto& [name, value] : {std::pair("model.hidden", has_mlps ? s.hidden : n), {"the vocabulary, padded to 16 tokens,", tokens}})
    if (const std::string fault = multiple(name, value); !fault.empty()) return fault;
  return tokens / n < least_tokens ? format("each rank needs {} of the {} tokens of the vocabulary", least_tokens, tokens) : "";
}

}  // namespace octet::models
