#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <stdexcept>

#include "octet/nn/host_values.hpp"
#include "octet/train/step/nonfinite.hpp"
#include "octet/train/step/small_model.testing.hpp"

// Values that are not finite in a stored moment.

namespace octet::train {
namespace {

using namespace octet::train::testing;

struct Fault {
  std::string name;
  optim::Level level;
  std::string moment;  // "m" or "v"
};
class EveryFault : public ::testing::TestWithParam<Fault> {};
INSTANTIATE_TEST_SUITE_P(Moments, EveryFault,
                         ::testing::Values(Fault{"FirstInF32", optim::Level::O1, "m"}, Fault{"SecondInF32", optim::Level::O1, "v"},
                                           Fault{"FirstInE4m3", optim::Level::O3, "m"}, Fault{"SecondInF16", optim::Level::O3, "v"}),
                         [](const auto& info) { return info.param.name; });

/// A NaN as one element of the codes.
void put_nan(const Stored& s, std::int64_t at) {
  switch (s.storage) {
    case Storage::f32: s.codes.f32()[at] = NAN; break;
    case Storage::f16: s.codes.as<Fp16>()[at] = to_fp16(NAN); break;
    case Storage::e4m3: s.codes.as<std::uint8_t>()[at] = E4M3::nan_code; break;
    default: FAIL() << "no NaN of " << name(s.storage);
  }
}
Stored moment(const Engine& e, const std::string& path, const std::string& which) {
  for (const optim::Optimizer::State& s : e.optimizer->states())
    if (s.name == path + "." + which) return s.stored;
  throw std::out_of_range(path);
}

// The update reads the moment after the gradients are known to be finite, so its values follow; the next step is skipped and names it.
TEST_P(EveryFault, IsNamedByTheFirstSkippedStepWhichChangesNothing) {
  const std::string path = "layers.1.mlp.down.weight";
  EngineConfig config = small_engine("llama", "current");
  config.optimizer->level = GetParam().level;
  Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
  StepRunner runner = train_steps(e, 2);
  const std::vector<data::Batch> batches{random_batch(4, 32, 61, 9)};
  EXPECT_EQ(first_nonfinite(e, batches), "");
  put_nan(moment(e, path, GetParam().moment), 300);  // in the third block of 128
  runner.run(batches, {.learning_rate = 1e-3});
  EXPECT_EQ(e.optimizer->last(e.stream).skip, 0);
  EXPECT_EQ(nonfinite_parameter(e), path);
  std::int64_t reached = 0;
  for (const Parameter* p : e.parameters.list())
    for (const float x : nn::flat_values(e.stream, {p->value})) reached += !std::isfinite(x);
  EXPECT_EQ(reached, 1) << "its neighbours are updated as usual";

  const std::vector<float> before = nn::flat_values(e.stream, e.parameters.values());
  std::string named;
  runner.run(batches, {.learning_rate = 1e-3}, [&] { named = first_nonfinite(e, batches); });
  EXPECT_EQ(e.optimizer->last(e.stream).skip, 1);
  EXPECT_EQ(named, path + "." + GetParam().moment);
  const std::vector<float> after = nn::flat_values(e.stream, e.parameters.values());
  EXPECT_EQ(0, std::memcmp(before.data(), after.data(), before.size() * sizeof(float)));
}

// In any storage, a step that is skipped for another reason finds them finite.
TEST(Moments, InEveryStorageAreReadByADiagnosis) {
  for (const Storage m : {Storage::f32, Storage::bf16, Storage::e4m3, Storage::e4m3_tensor, Storage::e4m3_expanded})
    for (const Storage v : {Storage::f32, Storage::bf16, Storage::f16, Storage::e4m3_tensor, Storage::e4m3_expanded, Storage::e4m3_root}) {
      EngineConfig config = small_engine("llama", "bf16");
      config.optimizer->m = m, config.optimizer->v = v, config.optimizer->allow_unsafe = true;
      Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
      train_steps(e, 2);
      EXPECT_EQ(first_nonfinite(e, std::vector{random_batch(4, 32, 61, 9)}), "") << name(m) << " " << name(v);
    }
}

}  // namespace
}  // namespace octet::train
