#include "octet/tokenizer/byte_tokenizer.hpp"

namespace octet::tokenizer {

std::size_t ByteTokenizer::encode(std::string_view text, std::vector<std::int32_t>& ids, Position) const {
  const auto* first = reinterpret_cast<const unsigned char*>(text.data());
  ids.insert(ids.end(), first, first + text.size());
  return 0;
}

std::string ByteTokenizer::decode(std::span<const std::int32_t> ids) const {
  std::string text;
  text.reserve(ids.size());
  for (const std::int32_t id : ids)
    if (id >= 0 && id < bytes) text += char(id);
  return text;
}

}  // namespace octet::tokenizer
