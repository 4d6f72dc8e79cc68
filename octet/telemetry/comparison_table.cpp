#include <algorithm>
#include <cmath>
#include <cstdio>

#include "octet/base/text.hpp"
#include "octet/telemetry/comparison.hpp"

namespace octet {
namespace {

using Table = std::vector<std::vector<std::string>>;  // rows of cells; the first row is the head

/// Columns as characters: bytes that do not continue a UTF-8 sequence.
std::size_t width_of(const std::string& s) {
  return std::size_t(std::count_if(s.begin(), s.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

/// Cells under each other, two spaces apart; the first column left-aligned, the others right.
std::string aligned(const Table& table) {
  std::vector<std::size_t> widths(table[0].size());
  for (const auto& row : table)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  std::string out;
  const auto put = [&](const std::vector<std::string>& row) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - width_of(row[i]), ' ');
      line += (i ? "  " : "") + (i ? space + row[i] : row[i] + space);
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

std::string number(double x, int digits) { return std::isfinite(x) ? fixed(x, digits) : "-"; }

std::string percent(double x) {
  if (!std::isfinite(x)) return "-";
  char buffer[48];
  std::snprintf(buffer, sizeof buffer, "%+.2f%%", 100 * x);
  return buffer;
}

std::string gap_text(const ComparisonRow& r, const Comparison& c) {
  if (r.recipe == c.baseline) return "-";
  return percent(r.gap) + (std::isfinite(r.gap_spread) ? " ±" + fixed(100 * r.gap_spread, 2) + "%" : "");
}

std::string verdict(const ComparisonRow& r, const Comparison& c) {
  if (r.state == RunState::diverged) return "diverged";
  if (r.recipe == c.baseline) return "baseline";
  return r.within ? "within" : "OVER";
}

std::string memory_table(const Comparison& c) {
  std::vector<std::string> names;  // in the order of their first appearance
  for (const auto& row : c.rows)
    for (const auto& m : row.memory.categories)
      if (std::find(names.begin(), names.end(), m.name) == names.end()) names.push_back(m.name);
  Table table{{"peak memory"}};
  for (const auto& name : names) table[0].push_back(printable(name));
  table[0].push_back("total");
  for (const auto& row : c.rows) {
    table.push_back({printable(row.recipe)});
    for (const auto& name : names) {
      const auto& all = row.memory.categories;
      const auto m = std::find_if(all.begin(), all.end(), [&](const auto& category) { return category.name == name; });
      table.back().push_back(m == all.end() ? "-" : bytes_text(double(m->bytes)));
    }
    table.back().push_back(bytes_text(double(row.memory.peak)));
  }
  return aligned(table);
}

}  // namespace

std::string table_text(const Comparison& c) {
  const std::string base = printable(c.baseline);
  Table table{
      {"recipe", "train loss", "eval loss", "gap to " + base, "grad cosine", "tokens/s", "x " + base, "peak memory", "skipped", ""}};
  for (const auto& r : c.rows)
    table.push_back({printable(r.recipe), number(r.train_loss, 4), number(r.eval_loss, 4), gap_text(r, c), number(r.gradient_cosine, 5),
                     std::isfinite(r.tokens_per_second) ? grouped(std::llround(r.tokens_per_second)) : "-", number(r.speed_ratio, 2),
                     bytes_text(double(r.memory.peak)), std::to_string(r.skipped), verdict(r, c)});
  std::string out = aligned(table);
  out += format("a gap within {}% is accepted", fixed(100 * std::max(c.tolerance, c.seed_spread), 2));
  out += c.seed_spread > c.tolerance ? format(" (the spread of {} over seeds)\n\n", base) : "\n\n";
  return out + memory_table(c);
}

}  // namespace octet
