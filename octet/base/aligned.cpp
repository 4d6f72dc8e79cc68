#include "octet/base/aligned.hpp"

#include <algorithm>

namespace octet {
namespace {

/// Columns as characters: bytes that do not continue a UTF-8 sequence.
std::size_t width_of(const std::string& s) {
  return std::size_t(std::count_if(s.begin(), s.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

std::string aligned(const TextTable& table, std::size_t left) {
  std::vector<std::size_t> widths(table[0].size());
  for (const auto& row : table)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
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

}  // namespace octet
