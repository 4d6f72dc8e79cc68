#include "octet/base/text.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

namespace octet {
namespace {

template <class T>
std::string shortest_text(T x) {
  char buffer[40];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, x).ptr};
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

std::string fixed(double x, int digits) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*f", digits, x);
  return buffer;
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

std::string printable(std::string_view s) {
  std::string out;
  for (std::size_t i = 0; i < s.size(); ++i) {
    const auto byte = [&](std::size_t at) { return at < s.size() ? static_cast<unsigned char>(s[at]) : 0u; };
    // U+0080 to U+009F are control characters too (U+009B starts an escape sequence); UTF-8 writes them as C2 80 to C2 9F.
    const bool c1 = byte(i) == 0xC2 && byte(i + 1) >= 0x80 && byte(i + 1) <= 0x9F;
    const unsigned control = c1 ? byte(++i) : byte(i);
    if (!c1 && control >= 0x20 && control != 0x7F) {
      out += s[i];
      continue;
    }
    char buffer[8];
    std::snprintf(buffer, sizeof buffer, "\\x%02x", control);
    out += buffer;
  }
  return out;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
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
