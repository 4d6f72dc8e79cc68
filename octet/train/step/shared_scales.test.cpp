#include "octet/train/step/shared_scales.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "octet/io/safetensors_writer.hpp"
#include "octet/train/checkpoint/slices.testing.hpp"
#include "octet/train/step/meshes.testing.hpp"
#include "tests/testing/scratch.hpp"

// Sums of gradients by one shared scale per tensor, on ranks that divide layers, stages, experts and state.

namespace octet::train {
namespace {

using namespace octet::train::testing;
using octet::testing::Scratch;
using parallel::Wire;

// Matrices of the MLP, and a tied embedding, are above SharedScaleSum::fewest_values.
EngineConfig config_of(bool tied) {
  EngineConfig c = small_engine("qwen3", "fp32");
  c.shape.width = 256, c.shape.hidden = 400, c.shape.vocabulary = 448, c.shape.tied = tied;
  c.comm.gradients = Wire::e4m3_shared;
  return c;
}

EngineConfig config_of_experts() {
  EngineConfig c = config_of(false);
  c.shape.family = "qwen3_moe", c.shape.experts = {.number = 4, .chosen = 2, .width = 128, .normalize = true};
  return c;
}

// Of a step of four micro-batches on all ranks; with `equal`, all have the same ones, so that sums need room.
std::vector<data::Batch> batches_of(std::int64_t groups, int group, bool equal = false) {
  std::vector<data::Batch> out;
  for (int i = group; i < 4; i += int(groups)) out.push_back(random_batch(1, 32, 61, equal ? 40 : 40 + std::uint64_t(i)));
  return out;
}

MeshSteps steps_on(const EngineConfig& config, const Mesh& mesh) {
  return steps_on_mesh(config, mesh, 1, 1e-3, [&](int, int group) { return batches_of(mesh.data, group); });
}

// The bound of data ranks alone, see Ranks.GradientsInEveryFormatOnTheWireAreNearTheirSums.
TEST(SharedScales, SumGradientsOnMeshesAsNearAsOnDataRanks) {
  const auto expect = [](const EngineConfig& config, const Mesh& mesh, const MeshSteps& one) {
    const MeshSteps many = steps_on(config, mesh);
    EXPECT_LT(distance(one.gradients, many.gradients), 0.08) << mesh.text();
    EXPECT_GT(distance(one.gradients, many.gradients), 0.0008) << mesh.text() << " did not use codes";
    EXPECT_NEAR(many.norm / one.norm, 1, 0.02) << mesh.text();
  };
  const MeshSteps one = steps_on(config_of(true), {});
  for (const std::int64_t zero : {0, 1, 2, 3}) expect(config_of(true), {.tensor = 2, .data = 2, .zero = zero}, one);
  for (const std::int64_t zero : {0, 1}) expect(config_of(true), {.data = 2, .pipeline = 2, .zero = zero}, one);
  expect(config_of(true), {.tensor = 2, .data = 2, .pipeline = 2, .zero = 1}, one);
  const MeshSteps untied = steps_on(config_of(false), {});
  expect(config_of(false), {.context = 2, .data = 2, .zero = 3, .shard = 2}, untied);
  const MeshSteps experts = steps_on(config_of_experts(), {});
  for (const std::int64_t zero : {0, 2}) expect(config_of_experts(), {.data = 4, .zero = zero, .expert = 2}, experts);
}

// Values by names of parameters, from the files of a folder. None is there twice.
std::map<std::string, float> factors_in(const std::string& folder) {
  std::map<std::string, float> out;
  for (int rank = 0; rank < 8; ++rank) {
    if (!exists(folder + "/" + state_file_name(rank))) continue;
    const auto file = io::SafetensorsFile::open(folder + "/" + state_file_name(rank));
    for (const io::TensorView& t : file.tensors()) {
      if (!t.name.starts_with("gradient_sums.")) continue;
      float value = 0;
      EXPECT_EQ(t.bytes.size(), sizeof value) << t.name;
      std::memcpy(&value, t.bytes.data(), sizeof value);
      EXPECT_TRUE(out.emplace(t.name.substr(0, t.name.find('#')), value).second) << t.name << " is there twice";
    }
  }
  return out;
}

// Equal gradients of ranks need room, so that factors leave 1; then every mesh has the same ones.
TEST(SharedScales, HaveOneFactorPerParameterThatEveryMeshSavesOnceAndResumes) {
  const EngineConfig config = config_of(true);
  const std::vector<Mesh> meshes{
      {.data = 2}, {.tensor = 2, .data = 2, .zero = 2}, {.data = 2, .pipeline = 2, .zero = 1}, {.data = 4, .zero = 3, .shard = 2}};
  for (const Mesh& from : meshes) {
    const Scratch saved;
    std::vector<std::vector<parallel::ScaleUse>> uses(std::size_t(from.all()));
    on_mesh(config, from, [&](Engine& e, int rank) {
      StepRunner runner = begin_steps(e);
      for (int step = 0; step < 3; ++step) runner.run(batches_of(from.data, e.axes.sequence_group(), true), {.learning_rate = 1e-3});
      uses[std::size_t(rank)] = e.shared_scales.uses(e.stream, e.sharding.gradient_sums(), e.parameters);
      save(e, rank, saved.at("."));
    });
    const std::map<std::string, float> factors = factors_in(saved.at("."));
    ASSERT_EQ(factors.size(), 5u) << from.text() << ": four matrices, and the embedding once";
    EXPECT_LT(factors.at("gradient_sums.mu.layers.0.mlp.down.weight.factor"), 1) << from.text();
    ASSERT_EQ(uses[0].size(), 5u) << from.text() << ": of both stages";
    for (const auto& of_rank : uses)
      for (std::size_t t = 0; t < of_rank.size(); ++t) EXPECT_EQ(of_rank[t].mu, uses[0][t].mu) << from.text();
    for (const Mesh& to : meshes) {
      const Scratch again;
      on_mesh(config, to, [&](Engine& e, int rank) {
        load(e, saved.at("."));
        save(e, rank, again.at("."));
      });
      EXPECT_EQ(factors_in(again.at(".")), factors) << from.text() << " -> " << to.text();
    }
    on_mesh(config, {}, [&](Engine& e, int) { load(e, saved.at(".")); });  // has none
  }
}

// Files of a folder as earlier versions wrote them: the factors of each bucket are one table, under the name of its first parameter.
void write_as_tables(const std::string& folder, const std::vector<std::vector<std::string>>& buckets) {
  const std::map<std::string, float> factors = factors_in(folder);
  for (int rank = 0; exists(folder + "/" + state_file_name(rank)); ++rank) {
    std::vector<io::TensorSpec> specs;
    std::map<std::string, std::vector<std::byte>> bytes;
    const auto file = io::SafetensorsFile::open(folder + "/" + state_file_name(rank));
    for (const io::TensorView& t : file.tensors()) {
      if (t.name.starts_with("gradient_sums.mu.")) continue;
      specs.push_back({std::string(t.name), t.dtype, {t.shape.begin(), t.shape.end()}});
      bytes[specs.back().name].assign(t.bytes.begin(), t.bytes.end());
    }
    for (const std::vector<std::string>& bucket : buckets) {
      std::vector<float> table;
      bool scaled = false;
      for (const std::string& parameter : bucket) {
        const auto factor = factors.find("gradient_sums.mu." + parameter + ".factor");
        table.push_back(factor != factors.end() ? factor->second : 1.0f), scaled |= factor != factors.end();
      }
      if (rank > 0 || !scaled) continue;
      specs.push_back({"gradient_sums." + bucket.front() + ".mu", io::StoredDType::f32, {std::int64_t(table.size())}});
      const auto* const begin = reinterpret_cast<const std::byte*>(table.data());
      bytes[specs.back().name].assign(begin, begin + sizeof(float) * table.size());
    }
    io::SafetensorsWriter out(folder + "/" + state_file_name(rank), specs);
    for (const auto& [name, values] : bytes) out.append(name, values);
    out.commit();
  }
}

TEST(SharedScales, FactorsOfCheckpointsOfEarlierVersionsAreTablesPerBucket) {
  const EngineConfig config = config_of(true);
  for (const Mesh& mesh : {Mesh{.data = 2}, Mesh{.data = 2, .zero = 2}}) {
    const Scratch saved, again;
    std::vector<std::vector<std::string>> buckets;
    on_mesh(config, mesh, [&](Engine& e, int rank) {
      StepRunner runner = begin_steps(e);
      for (int step = 0; step < 3; ++step) runner.run(batches_of(mesh.data, e.axes.sequence_group(), true), {.learning_rate = 1e-3});
      save(e, rank, saved.at("."));
      if (rank > 0) return;
      for (const nn::Bucket& b : e.parameters.buckets()) {
        buckets.emplace_back();
        for (const Parameter* p : b.parameters) buckets.back().push_back(p->path);
      }
    });
    const std::map<std::string, float> factors = factors_in(saved.at("."));
    ASSERT_LT(factors.at("gradient_sums.mu.layers.0.mlp.down.weight.factor"), 1) << mesh.text();
    write_as_tables(saved.at("."), buckets);
    on_mesh(config, mesh, [&](Engine& e, int rank) {
      load(e, saved.at("."));
      save(e, rank, again.at("."));
    });
    EXPECT_EQ(factors_in(again.at(".")), factors) << mesh.text();
    on_mesh(config, {}, [&](Engine& e, int) { load(e, saved.at(".")); });  // has none
  }
}

}  // namespace
}  // namespace octet::train
