#include "octet/tokenizer/added_tokens.hpp"

#include <algorithm>
#include <set>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/tokenizer/normalizer.hpp"
#include "octet/tokenizer/unicode.hpp"

namespace octet::tokenizer {
namespace {

constexpr std::size_t longest_content = 1024;
constexpr std::size_t most_content = std::size_t(1) << 21;  // of all; each byte has a node in the finder

/// The beginning of the white space at the end of `text`.
std::size_t trailing_space(std::string_view text) {
  while (!text.empty()) {
    const Character c = last_character(text);
    if (!is_white_space(c.code)) break;
    text.remove_suffix(c.bytes);
  }
  return text.size();
}

std::size_t leading_space(std::string_view text) {
  std::size_t n = 0;
  while (n < text.size()) {
    const Character c = first_character(text.substr(n));
    if (!is_white_space(c.code)) break;
    n += c.bytes;
  }
  return n;
}

bool alone(std::string_view text, std::size_t begin, std::size_t end) {
  const bool before = begin > 0 && is_word(last_character(text.substr(0, begin)).code);
  const bool after = end < text.size() && is_word(first_character(text.substr(end)).code);
  return !before && !after;
}

std::uint64_t edge(std::uint32_t node, char byte) { return std::uint64_t(node) << 8 | static_cast<unsigned char>(byte); }

}  // namespace

std::vector<AddedToken> read_added_tokens(const json::Fields& fields) {
  std::vector<AddedToken> out;
  if (!fields.has("added_tokens")) return out;
  std::set<std::string_view> seen;
  std::size_t all = 0;
  for (const auto& f : fields.objects("added_tokens")) {
    require_keys(f, {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
    const bool special = f.boolean_or("special", false);
    out.push_back({f.text("content"), std::int32_t(f.integer("id", 0, most_ids - 1)), f.boolean_or("single_word", false),
                   f.boolean_or("lstrip", false), f.boolean_or("rstrip", false), f.boolean_or("normalized", !special), special});
    const std::string& content = f.text("content");
    if (content.empty() || content.size() > longest_content) f.refuse("content", format("a text of 1 to {} bytes", longest_content));
    if ((all += content.size()) > most_content)
      f.refuse("content", format("shorter: all added tokens may have {} bytes together", grouped((long long)most_content)));
    if (!seen.insert(content).second) f.refuse("content", "different from those of other added tokens");
  }
  return out;
}

void TokenFinder::add(const std::string& content, const AddedToken& token) {
  if (content.empty()) return;
  std::uint32_t node = 0;
  for (const char c : content) {
    const auto [at, made] = edges_.try_emplace(edge(node, c), std::uint32_t(nodes_.size()));
    if (made) nodes_.push_back({});
    node = at->second;
  }
  first_bytes_[static_cast<unsigned char>(content[0])] = true;
  if (nodes_[node].token >= 0) return;  // two contents that are normalized alike: the first one is found
  nodes_[node].token = std::int32_t(tokens_.size());
  tokens_.push_back(token);
}

const AddedToken* TokenFinder::longest(std::string_view text, std::size_t& bytes) const {
  const AddedToken* found = nullptr;
  std::uint32_t node = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto at = edges_.find(edge(node, text[i]));
    if (at == edges_.end()) break;
    node = at->second;
    if (nodes_[node].token >= 0) found = &tokens_[std::size_t(nodes_[node].token)], bytes = i + 1;
  }
  return found;
}

void TokenFinder::divide(std::string_view text, const std::function<void(std::string_view)>& between,
                         const std::function<void(std::int32_t)>& found) const {
  std::size_t done = 0;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t bytes = 0;
    const AddedToken* token = first_bytes_[static_cast<unsigned char>(text[i])] ? longest(text.substr(i), bytes) : nullptr;
    if (token == nullptr) {
      ++i;
      continue;
    }
    std::size_t begin = i, end = i + bytes;
    i = end;
    if (token->single_word && !alone(text, begin, end)) continue;
    // The text from the last token's end to `done` is white space.
    if (token->lstrip) begin = done < begin ? done + trailing_space(text.substr(done, begin - done)) : done;
    if (token->rstrip) end = std::max(end, done), end += leading_space(text.substr(end));
    if (done < begin) between(text.substr(done, begin - done));
    found(token->id);
    done = end;
  }
  if (done < text.size()) between(text.substr(done));
}

}  // namespace octet::tokenizer
