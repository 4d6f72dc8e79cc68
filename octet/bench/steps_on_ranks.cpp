#include "octet/bench/steps_on_ranks.hpp"

#include <cmath>

#include "octet/base/aligned.hpp"
#include "octet/bench/rank_table.hpp"

namespace octet::bench {
namespace {

std::vector<std::string> cells_of(const std::string& recipe, const std::string& rank, double tokens, const RankTimes& r) {
  return {recipe,
          rank,
          grouped(std::llround(tokens)),
          milliseconds(r.seconds),
          "",
          grouped(std::llround(tokens / r.seconds)),
          milliseconds(r.compute()),
          milliseconds(r.communication),
          milliseconds(r.update),
          bytes_text(r.peak_bytes),
          bytes_text(r.sent_bytes)};
}

// The step is that of the slowest rank each time, its parts are means.
void add_rows(TextTable& lines, const StepOfRanks& row) {
  RankTimes all = row.steps.mean();
  std::vector<std::string> cells = cells_of(row.recipe, "all", row.steps.tokens, all);
  cells[3] = milliseconds(row.steps.seconds.median), cells[4] = quartiles(row.steps.seconds),
  cells[5] = grouped(std::llround(row.steps.rate()));
  lines.push_back(std::move(cells));
  for (std::size_t r = 0; r < row.steps.each.size(); ++r)
    lines.push_back(cells_of(row.recipe, std::to_string(r), row.steps.tokens / row.steps.ranks, row.steps.each[r]));
}

}  // namespace

StepsOnRanksResult measure_steps_on_ranks(const StepBenchOptions& p) {
  const std::vector<std::string> recipes = recipes_of(p);
  const auto make = [&](int ranks) {
    std::vector<RankCase> out(recipes.size(), RankCase{.config = p.config, .loads = p.loads});
    const std::int64_t others = p.config.ranks.beside_data();
    if (ranks % others != 0)
      throw ConfigError(format("{} ranks are not a multiple of the {} that train on the same sequences; choose --ranks {}", ranks, others,
                               round_up(ranks, others)));
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i].config.recipe.recipe = recipes[i], out[i].config.ranks.data = ranks / others;
      p.loads.configure(out[i].config);
    }
    return out;
  };
  std::vector<RankCase> cases;
  StepsOnRanksResult out{.facts = facts_of(p, measure_cases(p.ranks, make, cases)), .rows = {}};
  for (const RankCase& c : cases) out.rows.push_back({c.config.recipe.recipe, c.steps});
  return out;
}

std::string table_text(const StepsOnRanksResult& r) {
  TextTable lines{{"precision", "rank", "tokens/step", "step ms", "quartiles", "tok/s", "compute ms", "exposed comm ms", "update ms",
                   "memory", "sent per step"}};
  for (const StepOfRanks& row : r.rows) add_rows(lines, row);
  std::string loads;
  for (const StepOfRanks& row : r.rows)
    if (row.steps.fullest_load > 0) loads += format("{}: fullest expert {} x mean\n", row.recipe, fixed(row.steps.fullest_load, 2));
  return head_text(r.facts) + aligned(lines, 2) + loads;
}

json::Value to_json(const StepsOnRanksResult& r) {
  json::Array rows;
  for (const StepOfRanks& row : r.rows) {
    json::Object members{{"precision", row.recipe}};
    for (json::Member& m : members_of(row.steps)) members.push_back(std::move(m));
    rows.push_back(std::move(members));
  }
  json::Value out = to_json(r.facts);
  out.set("rows", rows);
  return out;
}

}  // namespace octet::bench
