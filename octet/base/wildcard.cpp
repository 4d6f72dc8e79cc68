#include "octet/base/wildcard.hpp"

#include <cstddef>

namespace octet {
namespace {

/// The offset behind the set that `pattern` begins with, or 0 where it has no end. "]" at its beginning is one of the set.
std::size_t end_of_set(std::string_view pattern) {
  std::size_t i = 1;
  if (i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^')) ++i;
  for (++i; i < pattern.size(); ++i)
    if (pattern[i] == ']') return i + 1;
  return 0;
}

/// `set`: with its brackets.
bool in_set(std::string_view set, char c) {
  const bool inverted = set[1] == '!' || set[1] == '^';
  bool found = false;
  for (std::size_t i = inverted ? 2 : 1; i + 1 < set.size(); ++i) {
    const auto value = [](char x) { return static_cast<unsigned char>(x); };
    if (i + 3 < set.size() && set[i + 1] == '-') {
      found = found || (value(set[i]) <= value(c) && value(c) <= value(set[i + 2]));
      i += 2;
    } else {
      found = found || set[i] == c;
    }
  }
  return found != inverted;
}

/// Bytes of `pattern` that match the one character c; 0 where they do not.
std::size_t matched(std::string_view pattern, char c) {
  if (pattern.empty()) return 0;
  if (pattern[0] == '?') return 1;
  if (pattern[0] == '\\' && pattern.size() > 1) return pattern[1] == c ? 2 : 0;
  if (pattern[0] == '[')
    if (const std::size_t end = end_of_set(pattern)) return in_set(pattern.substr(0, end), c) ? end : 0;
  return pattern[0] == c ? 1 : 0;
}

std::size_t matched_plainly(std::string_view pattern, char c) { return !pattern.empty() && (pattern[0] == '?' || pattern[0] == c) ? 1 : 0; }

template <class Matched>
bool match(std::string_view pattern, std::string_view text, const Matched& matched) {
  constexpr std::size_t none = std::string_view::npos;
  std::size_t p = 0, t = 0, star = none, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') star = p++, resume = t;  // tried with the shortest run first
    else if (const std::size_t n = matched(pattern.substr(p), text[t])) p += n, ++t;
    else if (star != none) p = star + 1, t = ++resume;
    else return false;
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace

bool wildcard_match(std::string_view pattern, std::string_view text) { return match(pattern, text, matched); }
bool star_match(std::string_view pattern, std::string_view text) { return match(pattern, text, matched_plainly); }

}  // namespace octet
