#include "octet/bench/sites.hpp"

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

}  // namespace

Sites sites_of(const std::vector<scaling::PlanRow>& plan, const models::ModelShape& shape) {
  std::vector<scaling::Site> found;
  for (const scaling::PlanRow& row : plan) {
    const bool head = row.out == shape.padded_vocabulary() && row.in == shape.width;
    const bool expands = row.path.ends_with("attn.q_b") || row.path.ends_with("attn.kv_b");
    if (row.out == 0 || expands || (!head && !row.path.starts_with("layers.0."))) continue;
    found.push_back({.path = row.path, .out = row.out, .in = row.in, .layer = head ? -1 : 0, .layers = int(shape.layers), .head = head});
  }
  check(found.size() == 5, "bench: a block without experts has 4 linear layers and the model a head, got {} in all", found.size());
  return {found[0], found[1], found[2], found[3], found[4]};
}

Planned plan_sites(Stream& stream, const Sites& sites, const scaling::PrecisionConfig& config) {
  Planned out;
  scaling::PrecisionConfig everywhere = config;
  everywhere.head = scaling::HeadPrecision::recipe, everywhere.first = everywhere.last = 0;
  out.recipe = config.recipe, out.precision = std::make_unique<scaling::Precision>(everywhere);
  for (const scaling::Site& site : sites.all()) out.plans.push_back(out.precision->plan(site));
  out.precision->allocate(stream);
  for (const scaling::LinearPlan& p : out.plans) out.layout += layout_text(p) + "; ";
  return out;
}

}  // namespace octet::bench
