#include <gtest/gtest.h>

#include <map>

#include "octet/train/step/small_model.testing.hpp"

// A model in chunks, each an engine as a rank of a pipeline has it, against the whole model.

namespace octet::train {
namespace {

using namespace octet::train::testing;

constexpr std::int64_t rows = 2, length = 32, layers = 5;
constexpr int micro_batches = 3;

EngineConfig config_of(const std::string& family, const std::string& recipe, const nn::Recompute& recompute) {
  EngineConfig c = small_engine(family, recipe, recompute);
  c.shape.layers = layers;
  return c;
}

struct Result {
  double loss = 0;
  std::vector<std::string> paths;
  std::vector<std::vector<float>> gradients;
};

void add_gradients(Engine& e, Result& out) {
  for (const Parameter* p : e.parameters.list()) {
    const Stored gradient = p->gradient.stored();
    const HostCopy values(e.stream, gradient.values());
    out.paths.push_back(p->path);
    out.gradients.emplace_back(values.as<float>(), values.as<float>() + values.tensor().count());
  }
}

scaling::Pass pass_of(int micro_batch) {
  return {.kind = scaling::Pass::Kind::train, .keep = Region(Lifetime::micro_batch, micro_batch), .count = false};
}

data::Batch batch_of(int micro_batch) { return random_batch(rows, length, 61, std::uint64_t(micro_batch)); }

Result of_whole(const EngineConfig& c) {
  Engine e(c, Device::cpu, machine::machine_target(Device::cpu));
  begin_steps(e);
  for (int i = 0; i < micro_batches; ++i) {
    const Scope scope(e.stream, Lifetime::micro_batch);
    const models::TokenBatch batch = upload(e.stream, batch_of(i), Lifetime::micro_batch);
    e.model->forward(e.stream, batch, pass_of(0), e.loss_sums(), e.loss_factor(rows * length));
    e.model->backward(e.stream, batch, pass_of(0));
  }
  Result out{.loss = *e.loss_sums().sum.as<double>()};
  add_gradients(e, out);
  return out;
}

/// The forwards of all micro-batches, and then their backwards: every chunk has all of them in flight.
Result of_chunks(EngineConfig c, const std::vector<models::ModelChunk>& chunks) {
  std::vector<std::unique_ptr<Engine>> engines;
  for (const models::ModelChunk& chunk : chunks) {
    c.model.chunks = {chunk};
    engines.push_back(std::make_unique<Engine>(c, Device::cpu, machine::machine_target(Device::cpu)));
    begin_steps(*engines.back());
  }
  const auto batch_in = [&](Engine& e, int i) { return upload(e.stream, batch_of(i), pass_of(i).keep); };
  std::vector<std::vector<models::TokenBatch>> batches(engines.size());
  for (int i = 0; i < micro_batches; ++i) {
    Tensor x;
    for (std::size_t n = 0; n < engines.size(); ++n) {
      Engine& e = *engines[n];
      batches[n].push_back(batch_in(e, i));
      const auto border = [&] { return e.stream.empty({rows * length, c.shape.width}, e.precision.activations(), pass_of(i).keep); };
      const Tensor out = n + 1 < engines.size() ? border() : Tensor{};
      e.model->forward(e.stream, batches[n].back(), pass_of(i), e.loss_sums(), e.loss_factor(rows * length), {.in = x, .out = out});
      x = out;
    }
  }
  for (int i = 0; i < micro_batches; ++i) {
    Stream& stream = engines.back()->stream;
    const Scope scope(stream);
    const Tensor d = stream.empty({rows * length, c.shape.width}, engines.back()->precision.activations());
    for (std::size_t n = engines.size(); n-- > 0;)
      engines[n]->model->backward(engines[n]->stream, batches[n][std::size_t(i)], pass_of(i), d);
  }
  Result out{.loss = *engines.back()->loss_sums().sum.as<double>()};
  for (const auto& e : engines) add_gradients(*e, out);
  return out;
}

/// Of every path, summed over the chunks that have it: a tied embedding is in the first and in the last.
std::map<std::string, std::vector<float>> by_path(const Result& r) {
  std::map<std::string, std::vector<float>> out;
  for (std::size_t i = 0; i < r.paths.size(); ++i) {
    std::vector<float>& sum = out.try_emplace(r.paths[i], r.gradients[i].size(), 0.0f).first->second;
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += r.gradients[i][k];
  }
  return out;
}

TEST(Chunks, HaveTheLossAndTheGradientsOfTheWholeModelBitByBit) {
  for (const char* family : {"llama", "qwen3", "gpt2"})
    for (const char* recipe : {"fp32", "current", "mxfp8"})
      for (const nn::Recompute& recompute : {nn::Recompute{}, nn::Recompute{.attention = true, .block = true}}) {
        const EngineConfig c = config_of(family, recipe, recompute);
        const Result whole = of_whole(c), cut = of_chunks(c, {{0, 1}, {1, 3}, {3, layers}});
        EXPECT_EQ(whole.loss, cut.loss) << family << recipe;
        const auto wanted = by_path(whole), have = by_path(cut);
        ASSERT_EQ(wanted.size(), have.size()) << family << recipe;
        for (const auto& [path, gradient] : wanted) {
          // The two gradients of a tied embedding are added in another order.
          if (c.shape.tied && path == "embedding.weight") continue;
          EXPECT_EQ(gradient, have.at(path)) << family << recipe << path;
        }
      }
}

TEST(Chunks, HaveTheirOwnParametersAndTheWholeModelsQuantizers) {
  EngineConfig c = config_of("llama", "current", {});
  const Engine whole(c, Device::null, {});
  std::size_t parameters = 0;
  for (const models::ModelChunk& chunk : {models::ModelChunk{0, 2}, models::ModelChunk{2, 5}}) {
    c.model.chunks = {chunk};
    const Engine e(c, Device::null, {});
    for (const Parameter* p : e.parameters.list()) {
      const bool first = p->path == "embedding.weight", last = p->path.starts_with("norm.") || p->path.starts_with("lm_head.");
      const int block = first || last ? (first ? 0 : layers - 1) : p->path[std::string("layers.").size()] - '0';
      EXPECT_TRUE(block >= chunk.first && block < chunk.end) << p->path;
    }
    parameters += e.parameters.list().size();
    EXPECT_EQ(e.precision.slots().size(), whole.precision.slots().size());
  }
  EXPECT_EQ(parameters, whole.parameters.list().size());
}

TEST(Chunks, AreRefusedWithBordersThatDoNotFit) {
  EngineConfig c = config_of("llama", "fp32", {});
  c.model.chunks = {{0, 2}};
  Engine e(c, Device::null, {});
  const models::TokenBatch batch = upload(e.stream, batch_of(0), Lifetime::step);
  EXPECT_THROW(e.model->forward(e.stream, batch, pass_of(0), e.loss_sums(), {}, {}), ContractError);
  EXPECT_THROW(e.model->forward(e.stream, batch, pass_of(0), e.loss_sums(), {}, {.number = 1}), ContractError);
}

}  // namespace
}  // namespace octet::train
