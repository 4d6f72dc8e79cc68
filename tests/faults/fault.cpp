#include "tests/faults/fault.hpp"

#include <algorithm>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "tests/faults/inputs.hpp"
#include "tests/faults/outliers.hpp"

namespace octet::faults {
namespace {

Fault outlier_in(scaling::Operand operand, const char* what) {
  const std::string name(scaling::name(operand));
  return {.name = "outlier." + name,
          .what = what,
          .tensor = [name](int layer) { return format("layers.{}.attn.out.{}", layer, name); },
          .disturbance = [operand](const Target& t) { return make_outlier(t, operand); }};
}

Fault bad_batches(const char* name, const char* what, BadBatch kind) {
  return {.name = name, .what = what, .recipes = {"current"}, .disturbance = [kind](const Target& t) { return make_bad_batches(t, kind); }};
}

std::vector<Fault> all_faults() {
  std::vector<Fault> all = {
      outlier_in(scaling::Operand::activation, "10^6 in one activation, one step"),
      outlier_in(scaling::Operand::weight, "10^6 in one weight"),
      outlier_in(scaling::Operand::gradient, "10^6 in one gradient, one step"),
      bad_batches("batch.repeated", "one token repeated in all batches of 5 steps", BadBatch::repeated_token),
      bad_batches("batch.labels", "random targets in 5 steps", BadBatch::label_noise),
      {.name = "rate", .what = "30 times the learning rate in 10 steps", .recipes = {"current"}, .disturbance = make_high_rate},
      {.name = "scale",
       .what = "a layer with frozen scales",
       .recipes = {"delayed"},
       .tensor = [](int layer) { return format("layers.{}.mlp.down", layer); },
       .disturbance = make_frozen_scale,
       .from_step = 20,
       .from_clipping = true},
      {.name = "nan",
       .what = "NaN in a row of the embedding",
       .recipes = {"current"},
       .tensor = [](int) { return std::string("embedding.weight"); },
       .disturbance = make_nan_row},
      {.name = "rank",
       .what = "a rank that is three times as slow",
       .recipes = {"current"},
       .tensor = [](int) { return std::string("rank 1"); },
       .disturbance = make_slow_rank,
       .configure = [](train::RunConfig& c) { c.train.steps = 40, c.train.health_every = 1, c.train.batch /= 2; },
       .from_step = 20,
       .ranks = 2},
      {.name = "e5m2",
       .what = "E5M2 for forward operands",
       .recipes = {"current"},
       .configure =
           [](train::RunConfig& c) {
             c.recipe.rules.push_back({.path = "*", .operands = {"x", "w"}, .format = "e5m2"});
           },
       .scored = false},
      {.name = "history",
       .what = "a history of one step",
       .recipes = {"delayed"},
       .configure = [](train::RunConfig& c) { c.recipe.options.history = 1; },
       .scored = false},
  };
  return all;
}

}  // namespace

const std::vector<Fault>& faults() {
  static const std::vector<Fault> all = all_faults();
  return all;
}

const Fault& fault(const std::string& name) {
  const auto found = std::ranges::find(faults(), name, &Fault::name);
  if (found != faults().end()) return *found;
  std::vector<std::string> names;
  for (const Fault& f : faults()) names.push_back(f.name);
  throw ConfigError(format("there is no fault \"{}\"; faults are {}", printable(name), joined(names)));
}

}  // namespace octet::faults
