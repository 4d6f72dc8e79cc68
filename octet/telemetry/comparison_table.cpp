#include <algorithm>
#include <cmath>
#include <cstdio>

#include "octet/base/aligned.hpp"
#include "octet/base/text.hpp"
#include "octet/telemetry/comparison.hpp"
#include "octet/telemetry/findings.hpp"

namespace octet::telemetry {
namespace {

std::string percent(double x) {
  if (!std::isfinite(x)) return "-";
  char buffer[48];
  std::snprintf(buffer, sizeof buffer, "%+.2f%%", 100 * x);
  return buffer;
}

std::string gap_text(const ComparisonRow& r, const Comparison& c) {
  if (r.arm == c.baseline && r.twin == 0) return "-";
  return percent(r.gap) + (std::isfinite(r.gap_half_width) ? " ±" + fixed(100 * r.gap_half_width, 2) + "%" : "");
}

bool any_average(const Comparison& c) {
  return std::any_of(c.rows.begin(), c.rows.end(), [](const ComparisonRow& r) { return std::isfinite(r.average_loss); });
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
    table.push_back({printable(row_name(row))});
    for (const auto& name : names) {
      const auto& all = row.memory.categories;
      const auto m = std::find_if(all.begin(), all.end(), [&](const auto& category) { return category.name == name; });
      table.back().push_back(m == all.end() ? "-" : bytes_text(double(m->bytes)));
    }
    table.back().push_back(bytes_text(double(row.memory.peak)));
  }
  return aligned_within(table);
}

}  // namespace

std::string table_text(const Comparison& c) {
  const std::string base = printable(c.baseline);
  const bool average = any_average(c);
  TextTable table{{"arm", "train loss", "eval loss"}};
  if (average) table[0].push_back("averaged");
  for (const std::string& head : {"gap to " + base, std::string("verdict"), std::string("grad cosine"), std::string("tokens/s"),
                                  "x " + base, std::string("peak memory"), std::string("skipped")})
    table[0].push_back(head);
  for (const auto& r : c.rows) {
    table.push_back({printable(row_name(r)), fixed(r.train_loss, 4, "-"), fixed(r.eval_loss, 4, "-")});
    if (average) table.back().push_back(fixed(r.average_loss, 4, "-"));
    for (const std::string& cell : {gap_text(r, c), verdict_text(r), fixed(r.gradient_cosine, 5, "-"),
                                    std::isfinite(r.tokens_per_second) ? grouped(std::llround(r.tokens_per_second)) : "-",
                                    fixed(r.speed_ratio, 2, "-"), bytes_text(double(r.memory.peak)), std::to_string(r.skipped)})
      table.back().push_back(cell);
  }
  return aligned_within(table) + "\n" + memory_table(c);
}

}  // namespace octet::telemetry
