#include "octet/base/text.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "octet/base/utf8.hpp"

namespace octet {
namespace {

template <class T>
std::string shortest_text(T x) {
  char buffer[40];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, x).ptr};
}

/// The character of a well-formed UTF-8 sequence.
unsigned code_point(std::string_view sequence) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(sequence[i]); };
  unsigned c = sequence.size() == 1 ? byte(0) : byte(0) & (0x7Fu >> sequence.size());
  for (std::size_t i = 1; i < sequence.size(); ++i) c = c << 6 | (byte(i) & 0x3Fu);
  return c;
}

/// Control characters, and those that a terminal acts on instead of showing them: marks of direction, line separators, blanks of no width,
/// tags.
bool hidden(unsigned c) {
  return c < 0x20 || (c >= 0x7F && c <= 0x9F) || c == 0xAD || c == 0x61C || (c >= 0x200B && c <= 0x200F) || (c >= 0x2028 && c <= 0x202E) ||
         (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF || (c >= 0xFFF9 && c <= 0xFFFB) || (c >= 0xE0000 && c <= 0xE0FFF);
}

std::string lower(std::string_view s) {
  std::string out(s);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
  return out;
}

}  // namespace

std::string to_text(double x) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%g", x);
  return buffer;
}

std::string fill(std::string_view pattern, std::initializer_list<std::string> values) {
  std::string out;
  for (const auto& value : values) {
    const auto hole = pattern.find("{}");
    if (hole == std::string_view::npos) break;
    out += pattern.substr(0, hole);
    out += value;
    pattern.remove_prefix(hole + 2);
  }
  return out += pattern;
}

std::string bytes_text(double bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  int unit = 0;
  while (std::fabs(bytes) >= 1024 && unit < 5) bytes /= 1024, ++unit;
  return fixed(bytes, unit == 0 || bytes >= 100 ? 0 : bytes >= 10 ? 1 : 2) + " " + units[unit];
}

std::string grouped(long long n) {
  std::string digits = std::to_string(n < 0 ? -n : n);
  for (int i = int(digits.size()) - 3; i > 0; i -= 3) digits.insert(std::size_t(i), 1, ',');
  return n < 0 ? "-" + digits : digits;
}

std::string counted(long long n, std::string_view noun) { return format("{} {}{}", grouped(n), noun, n == 1 ? "" : "s"); }

std::string fixed(double x, int digits) {
  std::string out(std::size_t(std::snprintf(nullptr, 0, "%.*f", digits, x)), '\0');
  std::snprintf(out.data(), out.size() + 1, "%.*f", digits, x);
  return out;
}

std::string fixed(double x, int digits, std::string_view otherwise) { return std::isfinite(x) ? fixed(x, digits) : std::string(otherwise); }

std::string shortest(double x) { return shortest_text(x); }
std::string shortest(float x) { return shortest_text(x); }

std::optional<double> parse_number(const std::string& text) {
  char* end = nullptr;
  const double x = std::strtod(text.c_str(), &end);
  if (text.empty() || std::isspace(static_cast<unsigned char>(text[0])) || end != text.c_str() + text.size()) return {};
  return x;
}

std::string printable(std::string_view s, std::size_t most) {
  if (s.size() > most) {
    const auto cut = [&](std::size_t at) {  // never inside a UTF-8 sequence, which continues for three bytes at most
      for (int i = 0; i < 3 && at > 0 && at < s.size() && (static_cast<unsigned char>(s[at]) & 0xC0) == 0x80; ++i) --at;
      return at;
    };
    return printable(s.substr(0, cut(2 * most / 3)), s.size()) + "..." + printable(s.substr(cut(s.size() - most / 3)), s.size());
  }
  std::string out;
  char buffer[16];
  for (std::size_t i = 0; i < s.size();) {
    const std::size_t n = utf8_sequence_bytes(s.substr(i));
    const unsigned c = n == 0 ? static_cast<unsigned char>(s[i]) : code_point(s.substr(i, n));
    if (n != 0 && !hidden(c)) {
      out += s.substr(i, n);
    } else {
      std::snprintf(buffer, sizeof buffer, c < 0x100 ? "\\x%02x" : "\\u%04x", c);
      out += buffer;
    }
    i += std::max<std::size_t>(n, 1);
  }
  return out;
}

std::size_t edit_distance(std::string_view first, std::string_view second) {
  const std::string a = lower(first), b = lower(second);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string nearest(std::string_view word, std::initializer_list<std::string_view> known) { return nearest_of(word, known); }

}  // namespace octet
