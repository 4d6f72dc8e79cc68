#pragma once

#include <concepts>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace octet {

/// Text of a value as messages show it. Types add their own overload beside themselves, found by argument lookup.
std::string to_text(double);
template <std::floating_point T>
std::string to_text(T x) {
  return to_text(double(x));
}
template <std::integral T>
std::string to_text(T x) {
  if constexpr (std::same_as<T, bool>) return x ? "true" : "false";
  else return std::to_string(x);
}
inline std::string to_text(std::string_view s) { return std::string(s); }
inline std::string to_text(const std::string& s) { return s; }
inline std::string to_text(const char* s) { return s; }

/// `pattern` with every "{}" filled by the next of `values`.
std::string fill(std::string_view pattern, std::initializer_list<std::string> values);

template <class... Args>
std::string format(std::string_view pattern, const Args&... args) {
  return fill(pattern, {to_text(args)...});
}

/// "1.5 GiB", "640 KiB", "12 B".
std::string bytes_text(double bytes);
/// 1234567 -> "1,234,567".
std::string grouped(long long n);
/// "1 document", "4,030 documents".
std::string counted(long long n, std::string_view noun);
/// x with `digits` digits after the point.
std::string fixed(double x, int digits);
/// The same, `otherwise` where x is not finite.
std::string fixed(double x, int digits, std::string_view otherwise);
/// The fewest digits that read back as x.
std::string shortest(double x);
std::string shortest(float x);
/// The number that `text` is as a whole: decimal, hexadecimal, inf or nan; none where it is anything else, or begins with white space.
std::optional<double> parse_number(const std::string& text);
/// Text from outside (a file's name, a key), safe to show: control characters, bytes that are not UTF-8 and characters that change the
/// direction or the layout of a line become \x1b or \u202e, and the middle of a text of more than `most` bytes becomes "...".
std::string printable(std::string_view s, std::size_t most = 240);
/// `most` of a whole message.
inline constexpr std::size_t most_of_a_message = 2000;
/// Words joined by a separator: "a, b, c".
template <class Range>
std::string joined(const Range& words, std::string_view between = ", ") {
  std::string out;
  for (const auto& word : words) (out += out.empty() ? "" : between) += word;
  return out;
}
/// The entry of `known` with the smallest edit distance from `word`, or "" when none is near.
std::string nearest(std::string_view word, std::initializer_list<std::string_view> known);
template <class Range>
std::string nearest_of(std::string_view word, const Range& known);

/// Single characters to insert, remove or exchange, upper and lower case being the same.
std::size_t edit_distance(std::string_view a, std::string_view b);

template <class Range>
std::string nearest_of(std::string_view word, const Range& known) {
  std::string best;
  if (word.size() > 128) return best;  // no name is that long, and the distance is quadratic
  std::size_t distance = 1 + (word.size() + 2) / 3;
  for (const auto& k : known) {
    const std::size_t d = edit_distance(word, k);
    if (d < distance) distance = d, best = std::string(k);
  }
  return best;
}

}  // namespace octet
