// A recipe of one's own, outside of Octet's tree: E4M3 with a power-of-two scale for every 64 values. It is registered under a name, after
// which every option that names a recipe accepts it. The program trains a small model under it and under BF16, and compares them.
//
//   cmake --build build/cpu --target example_add_recipe && build/cpu/examples/example_add_recipe
//
// A program of one's own links octet::train (examples/embed). CONTRIBUTING.md tells how a recipe becomes part of Octet instead.

#include <cmath>
#include <cstdio>
#include <exception>

#include "examples/counting.hpp"
#include "octet/machine/machine.hpp"
#include "octet/scaling/from_data.hpp"

using namespace octet;

namespace {

/// Scales come from the data, so there is no state: x, w and dy have blocks of 1 x 64 along K with one scale each. A recipe whose scales
/// follow past steps derives from Recipe and overrides history_length(), allocate(), end_step() and visit_state().
class Block64 final : public scaling::ScalesFromData {
 public:
  explicit Block64(const scaling::RecipeOptions& options)
      : ScalesFromData(scaling::formats_of("block64", options, "e4m3", true),
                       {ScaleRule::power_of_two, {1, 64}, {1, 64}, "1x64 blocks, power-of-two scales"}) {}
  /// Layers of other dimensions stay in BF16, and the plan says so.
  int multiple_of() const override { return 64; }
};

constexpr int steps = 24;

struct Result {
  float loss = 0;
  int layers = 0;  // that run in 8 bits
};

Result train(const std::string& recipe) {
  train::Engine engine(counting::config("llama", recipe), Device::cpu, machine::machine_target(Device::cpu));
  Result result;
  for (const scaling::PlanRow& row : engine.precision.rows()) result.layers += row.precision.starts_with("x e4m3");
  if (recipe == "block64") {
    std::printf("%s: %s\n", engine.precision.rows()[2].path.c_str(), engine.precision.rows()[2].precision.c_str());
    std::printf("%s: %s\n", engine.precision.rows().back().path.c_str(), engine.precision.rows().back().why.c_str());
  }
  result.loss = counting::train(engine, steps);
  std::printf("%-10s loss %.4f after %d steps, %d layers in 8 bits\n", recipe.c_str(), double(result.loss), steps, result.layers);
  return result;
}

bool run() {
  scaling::register_recipe(
      {.name = "block64",
       .summary = "1x64 blocks, power-of-two scales; E4M3",
       .make = [](const scaling::RecipeOptions& options) -> std::unique_ptr<scaling::Recipe> { return std::make_unique<Block64>(options); },
       .compared = true,
       .options = {"format"}});
  const Result baseline = train("bf16"), own = train("block64");
  // From ln 64 = 4.16, both end near 0.
  return baseline.layers == 0 && own.layers == 8 && baseline.loss < 0.02f && own.loss < 0.02f;
}

}  // namespace

int main() {
  try {
    return run() ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "add_recipe: %s\n", e.what());
    return 2;
  }
}
