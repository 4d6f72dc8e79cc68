#include <algorithm>
#include <cmath>
#include <cstdio>

#include "octet/base/aligned.hpp"
#include "octet/base/text.hpp"
#include "octet/telemetry/comparison.hpp"

namespace octet {
namespace {

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
  TextTable table{{"peak memory"}};
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
  TextTable table{
      {"recipe", "train loss", "eval loss", "gap to " + base, "grad cosine", "tokens/s", "x " + base, "peak memory", "skipped", ""}};
  for (const auto& r : c.rows)
    table.push_back({printable(r.recipe), fixed(r.train_loss, 4, "-"), fixed(r.eval_loss, 4, "-"), gap_text(r, c),
                     fixed(r.gradient_cosine, 5, "-"),
                     std::isfinite(r.tokens_per_second) ? grouped(std::llround(r.tokens_per_second)) : "-", fixed(r.speed_ratio, 2, "-"),
                     bytes_text(double(r.memory.peak)), std::to_string(r.skipped), verdict(r, c)});
  std::string out = aligned(table);
  out += format("a gap within {}% is accepted", fixed(100 * std::max(c.tolerance, c.seed_spread), 2));
  out += c.seed_spread > c.tolerance ? format(" (the spread of {} over seeds)\n\n", base) : "\n\n";
  return out + memory_table(c);
}

}  // namespace octet
