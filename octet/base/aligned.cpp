#include "octet/base/aligned.hpp"

#include <algorithm>

namespace octet {
namespace {

/// Columns as characters: bytes that do not continue a UTF-8 sequence.
std::size_t width_of(const std::string& s) {
  return std::size_t(std::count_if(s.begin(), s.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::vector<std::size_t> widths_of(const TextTable& table) {
  std::vector<std::size_t> widths(table[0].size());
  for (const auto& row : table)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  return widths;
}

// The first column and [begin, end).
TextTable columns_of(const TextTable& table, std::size_t begin, std::size_t end) {
  TextTable out;
  for (const auto& row : table) {
    out.push_back({row[0]});
    out.back().insert(out.back().end(), row.begin() + std::ptrdiff_t(begin), row.begin() + std::ptrdiff_t(end));
  }
  return out;
}

}  // namespace

std::string aligned(const TextTable& table, std::size_t left) {
  const std::vector<std::size_t> widths = widths_of(table);
  std::string out;
  const auto put = [&](const std::vector<std::string>& row) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - width_of(row[i]), ' ');
      line += (i ? "  " : "") + (i < left ? row[i] + space : space + row[i]);
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  };
  put(table[0]);
  std::size_t total = 2 * (widths.size() - 1);
  for (const std::size_t w : widths) total += w;
  out += std::string(total, '-') + '\n';
  for (std::size_t i = 1; i < table.size(); ++i) put(table[i]);
  return out;
}

std::string aligned_within(const TextTable& table, std::size_t width) {
  const std::vector<std::size_t> widths = widths_of(table);
  std::string out;
  for (std::size_t begin = 1, end; begin < widths.size(); begin = end) {
    std::size_t used = widths[0] + 2 + widths[begin];
    for (end = begin + 1; end < widths.size() && used + 2 + widths[end] <= width; ++end) used += 2 + widths[end];
    out += (begin > 1 ? "\n" : "") + aligned(columns_of(table, begin, end));
  }
  return out;
}

}  // namespace octet
