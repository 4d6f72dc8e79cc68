#include "octet/bench/scaling.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "octet/machine/machine.hpp"

namespace octet::bench {
namespace {

struct Shape {
  Scaling kind;
  std::string recipe;
  bool overlaps;
};

// Cases and their places in the table, in one order: the last one is on all ranks.
struct Plan {
  std::vector<RankCase> cases;
  std::vector<Shape> shapes;

  void add(const train::RunConfig& base, const Shape& shape, int ranks, std::int64_t accumulate) {
    RankCase c{.config = base};
    c.config.recipe.recipe = shape.recipe, c.config.ranks.data = ranks, c.config.train.accumulate = accumulate;
    c.config.comm.overlap = shape.overlaps;
    cases.push_back(std::move(c)), shapes.push_back(shape);
  }
};

void require_divisible(std::int64_t micro_batches, const std::vector<int>& counts) {
  for (const int n : counts)
    if (micro_batches % n != 0)
      throw ConfigError(
          format("--accumulate {}: a step's micro-batches are divided among 1 to {} ranks, and {} cannot have equal parts; "
                 "choose a multiple of {}",
                 micro_batches, counts.back(), n, fewest_micro_batches(counts.back())));
}

// Whether exchanges overlap, in the order in which both ways are measured. On a CPU they cannot.
std::vector<bool> ways(const train::RunConfig& c, int ranks) {
  if (machine::device_named(c.device) == Device::cpu) return {false};
  if (ranks == 1 || !c.comm.overlap) return {c.comm.overlap};
  return {false, true};
}

// At the largest number of ranks strong and weak are the same step, which is measured once.
Plan plan_of(const StepBenchOptions& p, int ranks) {
  if (p.config.ranks.of_sequence() > 1)
    throw ConfigError(
        "octet bench scaling measures data parallel ranks: set ranks.tensor, ranks.context and ranks.pipeline to 1, or choose octet bench "
        "step");
  const std::vector<int> counts = counts_up_to(ranks);
  const std::int64_t whole = p.config.train.accumulate > 0 ? p.config.train.accumulate : fewest_micro_batches(ranks);
  require_divisible(whole, counts);
  Plan out;
  for (const int n : counts)
    for (const std::string& recipe : recipes_of(p))
      for (const bool overlaps : ways(p.config, n)) {
        out.add(p.config, {Scaling::strong, recipe, overlaps}, n, whole / n);
        if (n != ranks) out.add(p.config, {Scaling::weak, recipe, overlaps}, n, whole / ranks);
      }
  return out;
}

bool alike(const ScalingRow& a, const ScalingRow& b) { return a.kind == b.kind && a.recipe == b.recipe; }

// Both kinds share the steps of all ranks; rows are in the order of a table.
std::vector<ScalingRow> rows_of(const Plan& plan, const std::vector<RankCase>& cases, int ranks) {
  std::vector<ScalingRow> rows;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Shape& s = plan.shapes[i];
    rows.push_back({.kind = s.kind, .recipe = s.recipe, .overlaps = s.overlaps, .steps = cases[i].steps});
    if (cases[i].steps.ranks == ranks) rows.push_back(rows.back()), rows.back().kind = Scaling::weak;
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.kind < b.kind; });
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.recipe < b.recipe; });
  for (ScalingRow& row : rows) {
    const auto one = std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return alike(r, row) && r.steps.ranks == 1; });
    row.gain = row.steps.rate() / one->steps.rate();
  }
  return rows;
}

}  // namespace

std::vector<int> counts_up_to(int ranks) {
  std::vector<int> out;
  for (int n = 1; n < ranks; n *= 2) out.push_back(n);
  out.push_back(ranks);
  return out;
}

std::int64_t fewest_micro_batches(int ranks) {
  std::int64_t out = 1;
  for (const int n : counts_up_to(ranks)) out = std::lcm(out, std::int64_t(n));
  return out;
}

std::vector<OverlapGain> ScalingResult::gains() const {
  std::vector<OverlapGain> out;
  for (const ScalingRow& with : rows)
    for (const ScalingRow& without : rows) {
      if (!alike(with, without) || with.steps.ranks != without.steps.ranks || !with.overlaps || without.overlaps) continue;
      const double exposed = with.steps.mean().communication, exposed_without = without.steps.mean().communication;
      if (std::isfinite(exposed) && exposed_without > 0)
        out.push_back({with.kind, with.recipe, with.steps.ranks, exposed, exposed_without});
    }
  return out;
}

ScalingResult measure_scaling(const StepBenchOptions& p) {
  recipes_of(p);
  std::vector<RankCase> cases;
  ScalingResult out{.facts = facts_of(p, measure_cases(
                                             p.ranks, [&](int ranks) { return plan_of(p, ranks).cases; }, cases)),
                    .rows = {}};
  out.rows = rows_of(plan_of(p, out.facts.place.ranks), cases, out.facts.place.ranks);
  return out;
}

}  // namespace octet::bench
