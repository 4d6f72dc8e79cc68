#include "octet/optim/schedule.hpp"

#include <algorithm>
#include <cmath>

namespace octet::optim {

void ScheduleConfig::fields(config::FieldVisitor& v) {
  v.choice("kind", kind, "how the learning rate falls after the warm-up",
           {{"constant", Kind::constant}, {"linear", Kind::linear}, {"cosine", Kind::cosine}, {"wsd", Kind::wsd}});
  v.field("warmup", warmup, "share of the run in which the rate rises to its peak", {.at_least = 0, .at_most = 1});
  v.field("decay", decay, "wsd: share of the run, at its end, in which the rate falls", {.above = 0, .at_most = 1});
  v.field("final_ratio", final_ratio, "rate at the end over the peak", {.at_least = 0, .at_most = 1});
  v.idle("decay", kind != Kind::wsd, "only optim.schedule.kind = \"wsd\" reads it");
  v.idle("final_ratio", kind == Kind::constant, "the rate does not fall, as optim.schedule.kind is \"constant\"");
}

double rate_factor(const ScheduleConfig& c, double progress) {
  using Kind = ScheduleConfig::Kind;
  progress = std::clamp(progress, 0.0, 1.0);
  if (progress < c.warmup) return progress / c.warmup;
  const double rest = c.warmup < 1 ? (progress - c.warmup) / (1 - c.warmup) : 1;
  switch (c.kind) {
    case Kind::constant: return 1;
    case Kind::linear: return 1 - (1 - c.final_ratio) * rest;
    case Kind::cosine: return c.final_ratio + (1 - c.final_ratio) * 0.5 * (1 + std::cos(3.141592653589793 * rest));
    case Kind::wsd: {
      const double falling = (progress - (1 - c.decay)) / c.decay;
      return falling <= 0 ? 1 : 1 - (1 - c.final_ratio) * falling;
    }
  }
  return 1;
}

}  // namespace octet::optim
