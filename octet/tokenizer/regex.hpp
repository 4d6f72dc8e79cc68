#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace octet::tokenizer {

/// A found match: bytes [begin, end) of the text.
struct Match {
  std::size_t begin = 0, end = 0;
};

/// A pattern as tokenizer.json has it, in the syntax that Oniguruma and PCRE2 share: literals, classes, alternatives, groups (?: (?i: (?>
/// (?= (?! (?<= (?<!, quantifiers, \s \S \d \D \w \W \p{} \P{} and escapes. Other syntax is refused by name, so that no pattern gets
/// another meaning. Compiled by PCRE2 to machine code. Const calls are thread-safe.
class Regex {
 public:
  /// Throws DataError: "<file>: <where> ..." for a pattern that is invalid, unsupported, or matches the empty text.
  Regex(std::string_view pattern, const std::string& file, const std::string& where);
  /// The pattern that matches `literal`.
  static Regex of_literal(std::string_view literal, const std::string& file, const std::string& where);

  /// Memory for matching, for one thread at a time.
  class Scratch {
   public:
    Scratch();
    ~Scratch();
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

   private:
    friend class Regex;
    struct State;
    std::unique_ptr<State> state_;
  };

  /// The first match at or after `from` in well-formed UTF-8; false when there is none. Throws DataError when it needs too many steps.
  bool find(std::string_view text, std::size_t from, Scratch&, Match&) const;
  const std::string& pattern() const { return pattern_; }

 private:
  struct Compiled;
  std::string pattern_, where_;
  std::shared_ptr<const Compiled> compiled_;
};

/// The pattern in PCRE2's syntax. Throws as Regex does.
std::string pcre2_pattern(std::string_view pattern, const std::string& where);

}  // namespace octet::tokenizer
