#include "octet/train/step/weight_average.hpp"

#include <gtest/gtest.h>

#include "octet/train/step/evaluate.hpp"
#include "octet/train/step/small_model.testing.hpp"

namespace octet::train {
namespace {

using testing::random_batch, testing::small_engine;

EngineConfig config_of(Storage master, bool average) {
  EngineConfig c = small_engine("llama", "current");
  c.optimizer->master = master, c.average = average;
  return c;
}

/// Four steps, of which the last three are averaged where the engine has an average; `after` is called behind each of these.
template <class After>
void train(Engine& e, After after) {
  StepRunner runner = testing::begin_steps(e);
  for (int s = 0; s < 4; ++s) {
    runner.run(std::vector{random_batch(4, 32, 61, std::uint64_t(s))}, {.learning_rate = 1e-2}, [&] {
      if (e.average && s > 0) e.average->add(e.stream);
    });
    if (s > 0) after();
  }
}

TEST(WeightAverage, IsTheMeanOfTheWeightsAfterEachStep) {
  for (const Storage master : {Storage::f32, Storage::bf16}) {
    Engine e(config_of(master, true), Device::cpu, {});
    std::vector<std::vector<float>> seen;
    train(e, [&] { seen.push_back(nn::flat_values(e.stream, e.parameters.values())); });
    ASSERT_EQ(e.average->count(), 3);
    const std::vector<float> mean = nn::flat_values(e.stream, e.average->means());
    for (std::size_t i = 0; i < mean.size(); ++i) {
      const double a = seen[0][i], b = seen[1][i], c = seen[2][i], largest = std::max({std::fabs(a), std::fabs(b), std::fabs(c)});
      ASSERT_NEAR(mean[i], (a + b + c) / 3, 3 * 6 * 0x1p-24 * largest) << i;
    }
    EXPECT_NE(seen[0], seen[2]);
  }
}

TEST(WeightAverage, ChangesNoBitOfTraining) {
  for (const Storage master : {Storage::f32, Storage::bf16}) {
    Engine with(config_of(master, true), Device::cpu, {}), without(config_of(master, false), Device::cpu, {});
    const data::Batch held_out = random_batch(4, 32, 61, 99);
    train(with, [&] {
      const AveragedWeights averaged(with.stream, with.parameters, *with.average);
      evaluate_batch(with, held_out);
    });
    train(without, [] {});
    EXPECT_EQ(nn::flat_values(with.stream, with.parameters.values()), nn::flat_values(without.stream, without.parameters.values()));
    EXPECT_EQ(evaluate_batch(with, held_out).loss, evaluate_batch(without, held_out).loss);
  }
}

TEST(WeightAverage, IsInTheParametersWhileItIsAskedFor) {
  Engine e(config_of(Storage::f32, true), Device::cpu, {});
  train(e, [] {});
  const std::vector<float> own = nn::flat_values(e.stream, e.parameters.values());
  const double loss = evaluate_batch(e, random_batch(4, 32, 61, 99)).loss;
  {
    const AveragedWeights averaged(e.stream, e.parameters, *e.average);
    EXPECT_EQ(nn::flat_values(e.stream, e.parameters.values()), nn::flat_values(e.stream, e.average->means()));
    EXPECT_NE(evaluate_batch(e, random_batch(4, 32, 61, 99)).loss, loss) << "quantized weights follow, too";
  }
  EXPECT_EQ(nn::flat_values(e.stream, e.parameters.values()), own);
  e.average->forget();
  EXPECT_THROW(AveragedWeights(e.stream, e.parameters, *e.average), ContractError);
  e.average->add(e.stream);
  EXPECT_EQ(nn::flat_values(e.stream, e.average->means()), own) << "begun anew";
}

}  // namespace
}  // namespace octet::train
