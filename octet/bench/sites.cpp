#include "octet/bench/sites.hpp"

#include <algorithm>

namespace octet::bench {
namespace {

std::string layout_text(const scaling::Quantizer& q) {
  const ops::QuantizeSpec spec = q.spec({});
  if (!spec.quantizes()) return to_text(spec.format);
  return format("{} {} {}", spec.format, spec.rows, spec.descale_dtype());
}

std::string layout_text(const scaling::LinearPlan& p) {
  return format("{}, {}, {}{}", layout_text(*p.x), layout_text(*p.w), layout_text(*p.dy), p.fast_forward ? ", fast forward" : "");
}

// Layers that neither read a block's input nor make its output.
bool is_inner(const std::string& path) {
  constexpr const char* ends[] = {"attn.q_b", "attn.kv_b", "mlp.router"};
  return std::ranges::any_of(ends, [&](const char* end) { return path.ends_with(end); });
}

}  // namespace

Sites sites_of(const std::vector<scaling::PlanRow>& plan, const models::ModelShape& shape) {
  std::vector<scaling::Site> found;
  for (const scaling::PlanRow& row : plan) {
    const bool head = row.out == shape.padded_vocabulary() && row.in == shape.width && !row.path.starts_with("layers.");
    if (row.out == 0 || is_inner(row.path) || (!head && !row.path.starts_with("layers.0."))) continue;
    found.push_back({.path = row.path, .out = row.out, .in = row.in, .layer = head ? -1 : 0, .layers = int(shape.layers), .head = head});
  }
  if (found.size() > 5) std::erase_if(found, [](const scaling::Site& s) { return s.path.find(".mlp.experts.") != s.path.npos; });
  check(found.size() == 5, "bench: a block has 4 linear layers that read or make its rows, and the model a head, got {} in all",
        found.size());
  return {found[0], found[1], found[2], found[3], found[4]};
}

PlannedSites plan_sites(Stream& stream, const Sites& sites, const scaling::PrecisionConfig& config) {
  PlannedSites out;
  scaling::PrecisionConfig everywhere = config;
  everywhere.head = scaling::HeadPrecision::recipe, everywhere.first = everywhere.last = 0;
  out.recipe = config.recipe, out.precision = std::make_unique<scaling::Precision>(everywhere);
  for (const scaling::Site& site : sites.all()) out.plans.push_back(out.precision->plan(site));
  out.precision->allocate(stream);
  for (const scaling::LinearPlan& p : out.plans) out.layout += layout_text(p) + "; ";
  return out;
}

}  // namespace octet::bench
