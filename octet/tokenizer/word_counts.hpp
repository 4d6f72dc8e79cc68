#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "octet/tokenizer/regex.hpp"

namespace octet::tokenizer {

/// The frequencies of the parts of texts that a pattern makes. For one thread; counts of several are joined.
class WordCounts {
 public:
  /// `pattern` must outlive this.
  explicit WordCounts(const Regex& pattern) : pattern_(pattern) {}
  /// Adds the parts of a text; invalid UTF-8 is read as U+FFFD.
  void add(std::string_view text);
  /// Adds the counts of `other`, which is then empty.
  void join(WordCounts& other);
  const std::unordered_map<std::string, std::uint64_t>& counts() const { return counts_; }

 private:
  const Regex& pattern_;
  Regex::Scratch scratch_;
  std::unordered_map<std::string, std::uint64_t> counts_;
  std::string storage_, word_;
};

}  // namespace octet::tokenizer
