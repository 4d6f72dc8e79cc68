#include "octet/tokenizer/word_counts.hpp"

#include "octet/tokenizer/unicode.hpp"

namespace octet::tokenizer {

void WordCounts::add(std::string_view text) {
  std::size_t replaced = 0, at = 0;
  text = well_formed(text, storage_, replaced);
  Match match;
  while (at < text.size() && pattern_.find(text, at, scratch_, match)) {
    word_.assign(text.substr(match.begin, match.end - match.begin));
    ++counts_[word_];
    at = match.end;
  }
}

void WordCounts::join(WordCounts& other) {
  for (auto& [word, count] : other.counts_) counts_[word] += count;
  other.counts_.clear();
}

}  // namespace octet::tokenizer
