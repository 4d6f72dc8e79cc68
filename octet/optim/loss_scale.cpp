#include "octet/optim/loss_scale.hpp"

#include <cmath>

#include "octet/base/text.hpp"
#include "octet/ops/loss_scale/loss_scale.math.hpp"

namespace octet::optim {
namespace {

using Mode = LossScaleConfig::Mode;

bool is_power_of_two(double x) {
  int exponent = 0;
  return std::frexp(x, &exponent) == 0.5;
}

// The bounds of the keys. Not all are powers of two themselves.
constexpr double least = 1e-9, most = 1e18, most_growth = 1e9;

// The next power of two away from 1, or towards it where that would be beyond the bounds of the keys.
double near_power_of_two(double x, double at_most) {
  const double power = std::exp2(x < 1 ? std::floor(std::log2(x)) : std::ceil(std::log2(x)));
  return power < least ? 2 * power : power > at_most ? power / 2 : power;
}

void require_sound(const LossScaleConfig& c, bool fixed) {
  const auto power = [](const char* key, double x, double at_most = most) {
    if (!is_power_of_two(x))
      throw ConfigError(format("loss_scale.{} = {}: must be a power of two such as {}, since only these change no bit of a gradient", key,
                               x, scale_text(near_power_of_two(x, at_most))));
  };
  power("start", c.start);
  if (fixed) return;
  power("growth", c.growth, most_growth), power("backoff", c.backoff), power("smallest", c.smallest), power("largest", c.largest);
  if (c.smallest > c.start || c.start > c.largest)
    throw ConfigError(
        format("loss_scale.start = {}: must be between loss_scale.smallest = {} and loss_scale.largest = {}; change one of them",
               scale_text(c.start), scale_text(c.smallest), scale_text(c.largest)));
}

}  // namespace

void LossScaleConfig::fields(config::FieldVisitor& v) {
  v.choice("mode", mode, "auto: dynamic if activations are FP16, otherwise off; a static scale never moves",
           {{"auto", Mode::automatic}, {"off", Mode::off}, {"static", Mode::fixed}, {"dynamic", Mode::dynamic}});
  v.field("start", start, "factor of the loss in the first step, a power of two", {.at_least = least, .at_most = most});
  v.field("growth", growth, "factor of the scale after growth_steps good steps in a row", {.above = 1, .at_most = most_growth});
  v.field("growth_steps", growth_steps, "good steps in a row after which the scale grows; 0: never", {.at_least = 0});
  v.field("backoff", backoff, "factor of the scale after a skipped step", {.at_least = least, .below = 1});
  v.field("smallest", smallest, "bound below which the scale does not fall", {.at_least = least, .at_most = most});
  v.field("largest", largest, "bound above which the scale does not grow", {.at_least = least, .at_most = most});
  for (const char* key : {"start", "growth", "growth_steps", "backoff", "smallest", "largest"})
    v.idle(key, mode == Mode::off, "loss_scale.mode is \"off\"");
  for (const char* key : {"growth", "growth_steps", "backoff", "smallest", "largest"})
    v.idle(key, mode == Mode::fixed, "loss_scale.mode is \"static\"");
  v.idle("growth", growth_steps == 0, "loss_scale.growth_steps is 0");
}

Mode LossScaleConfig::mode_for(DType activations) const {
  if (mode != Mode::automatic) return mode;
  return activations == DType::f16 ? Mode::dynamic : Mode::off;
}

std::string to_text(Mode mode) {
  constexpr const char* names[] = {"auto", "off", "static", "dynamic"};
  return names[std::size_t(mode)];
}

std::string scale_text(double scale) { return scale >= 1 ? fixed(scale, 0) : shortest(scale); }

LossScale::LossScale(Stream& stream, const LossScaleConfig& c, bool fixed)
    : rule_{.growth = float(c.growth),
            .backoff = float(c.backoff),
            .growth_steps = c.growth_steps,
            .smallest = float(c.smallest),
            .largest = float(c.largest)},
      state_(stream.zeros({ops::loss_scale_floats}, DType::f32, Lifetime::run, Category::optimizer)) {
  require_sound(c, fixed);
  if (fixed) rule_ = {.growth = 1, .backoff = 1, .growth_steps = 0, .smallest = float(c.start), .largest = float(c.start)};
  const ops::LossScaleState start{.scale = float(c.start)};
  upload(stream, &start, state_);
}

void LossScale::end_step(Stream& stream, const Tensor& skip) {
  ops::move_loss_scale(stream, {.state = state_, .skip = skip, .rule = rule_});
}

LossScale::Move LossScale::read(Stream& stream, float skip) const {
  const ops::LossScaleState now = *HostCopy(stream, state_).as<ops::LossScaleState>();
  return {.now = now.scale, .next = ops::moved(now, rule_, skip).scale};
}

}  // namespace octet::optim
