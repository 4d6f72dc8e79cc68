#include <gtest/gtest.h>

#include <map>

#include "octet/nn/linear.hpp"
#include "octet/train/step/meshes.testing.hpp"

// Scales and codes of operands of which tensor parallel ranks have parts, against those that one rank makes of the same values.

namespace octet::train {
namespace {

using namespace octet::train::testing;

using Mesh = TensorMesh;

EngineConfig config_of(const std::string& recipe, const Mesh& mesh) {
  EngineConfig config = small_engine("qwen3", recipe);
  config.shape.hidden = 128, config.precision.options.history = 4;
  mesh.set(config.ranks);
  return config;
}

std::vector<data::Batch> batches_of(int step, int rank, std::int64_t data) {
  std::vector<data::Batch> out;
  for (int i = rank; i < 2; i += int(data)) out.push_back(random_batch(1, 32, 61, 900 + std::uint64_t(2 * step + i)));
  return out;
}

// work(engine, rank) on each rank.
template <class Work>
void on_ranks(const EngineConfig& config, const Mesh& mesh, const Work& work) {
  comm::run_on_threads({.ranks = mesh.all(), .limit_seconds = 30}, [&](comm::Communicator& c) {
    Engine e(config, Device::cpu, machine::machine_target(Device::cpu), &c);
    work(e, c.rank());
  });
}

// The largest value, and the least and the largest scale, of operands of the first step that no sum over ranks came before, whose order
// differs: all weights, the input of the first attention, and the input of its output. Ranks of a data group have other sequences, so
// there only weights are compared.
using Scales = std::map<std::string, std::vector<float>>;
Scales scales_on(const EngineConfig& config, const Mesh& mesh) {
  Scales out;
  on_ranks(config, mesh, [&](Engine& e, int rank) {
    StepRunner runner = begin_steps(e);
    runner.run(batches_of(0, e.ranks().rank(), mesh.data), {.learning_rate = 1e-2, .measure = true}, [&] {
      const Readout shown = read_out(e);
      for (std::size_t i = 0; i < shown.health.size() && rank == 0; ++i) {
        const scaling::Slot& slot = e.precision.slots().slots()[i];
        const bool weight = slot.operand == scaling::Operand::weight;
        const bool first = slot.operand == scaling::Operand::activation && slot.path.starts_with("layers.0.attn.");
        if (weight || (first && mesh.data == 1))
          out[slot.path + std::string(name(slot.operand))] = {shown.amax[i], shown.health[i].scale_min, shown.health[i].scale_max};
      }
    });
  });
  return out;
}

TEST(TensorScales, FromTheDataAreThoseOfOneRank) {
  const auto on = [](const Mesh& mesh) {
    EngineConfig config = config_of("current", mesh);
    config.precision.head = scaling::HeadPrecision::recipe;
    return scales_on(config, mesh);
  };
  const Scales one = on({});
  ASSERT_EQ(one.size(), 4u * 2 + 1 + 2);  // weights of two blocks and of the head, and two inputs
  for (const Mesh mesh : {Mesh{2, 1}, {4, 1}}) EXPECT_EQ(on(mesh), one) << mesh.text();
  for (const Mesh mesh : {Mesh{2, 2}, {2, 2, 1}, {2, 2, 3}})
    for (const auto& [what, scales] : on(mesh))
      EXPECT_TRUE(scales == one.at(what) || (mesh.zero > 0 && what.starts_with("lm_head"))) << what << ", " << mesh.text();  // of copies
}

// Of a rank: its parts of all weights as forward's and backward's GEMMs read them, and of the input of the first attention's output.
struct Operands {
  struct Weight {
    Cut cut;
    std::vector<float> rows, cols;  // [out, in] both
  };
  std::map<std::string, Weight> weights;
  std::vector<float> attended;
};

class Collect final : public nn::Visitor, public Observer {
 public:
  explicit Collect(Engine& e) : e_(e) { e.stream.set_observer(this); }
  ~Collect() override { e_.stream.set_observer(nullptr); }
  void block(int number) override { e_.model->open(e_.stream, number); }
  void linear(nn::LinearSite& l) override {
    const Scope scope(e_.stream);
    Operands::Weight& w = out.weights[l.path()];
    const Quantized rows = l.weight().operand(e_.stream, nn::Weight::Side::rows),
                    cols = l.weight().operand(e_.stream, nn::Weight::Side::cols);
    w.cut = l.weight().parameter().cut;
    for (std::int64_t r = 0; r < l.out(); ++r)
      for (std::int64_t c = 0; c < l.in(); ++c) w.rows.push_back(value_at(rows, r, c)), w.cols.push_back(value_at(cols, c, r));
  }
  void observe(std::string_view path, std::string_view what, const Tensor& t) override {
    if (path == "layers.0.attn.out" && what == "x" && out.attended.empty()) out.attended = nn::flat_values(e_.stream, std::vector{t});
  }
  Operands out;

 private:
  Engine& e_;
};

std::vector<Operands> operands_on(const EngineConfig& config, const Mesh& mesh) {
  std::vector<Operands> out;
  out.resize(std::size_t(mesh.all()));
  on_ranks(config, mesh, [&](Engine& e, int rank) {
    Collect collect(e);
    StepRunner runner = begin_steps(e);
    e.model->visit(collect);
    runner.run(batches_of(0, e.ranks().rank(), mesh.data), {.learning_rate = 1e-2});
    out[std::size_t(rank)] = std::move(collect.out);
  });
  return out;
}

// Masters are equal, so codes and descales are if their scales are. The values that the second operand of attention is encoded from are
// equal, too, and so is their scale (FromTheDataAreThoseOfOneRank).
TEST(TensorScales, GiveTheCodesOfOneRank) {
  for (const auto codes : {scaling::WeightCodes::cached, scaling::WeightCodes::on_demand}) {
    const auto on = [&](const Mesh& mesh) {
      EngineConfig config = config_of("current", mesh);
      config.precision.weights = codes;
      return operands_on(config, mesh);
    };
    const Operands one = on({})[0];
    const std::size_t tokens = 32, columns = one.attended.size() / tokens;
    for (const Mesh mesh : {Mesh{2, 1}, {4, 1}, {2, 2, 1}, {2, 2, 2}, {2, 2, 3}}) {
      const std::vector<Operands> many = on(mesh);
      for (std::size_t rank = 0; rank < many.size(); ++rank) {
        for (const auto& [path, weight] : many[rank].weights) {
          if (mesh.zero > 0 && path == "lm_head") continue;  // BF16, of copies
          EXPECT_EQ(weight.rows, nn::part_of(weight.cut, one.weights.at(path).rows)) << path << ", " << mesh.text();
          EXPECT_EQ(weight.cols, nn::part_of(weight.cut, one.weights.at(path).cols)) << path << ", " << mesh.text();
        }
        const std::size_t own = columns / std::size_t(mesh.tensor);
        for (std::size_t t = 0; t < tokens && mesh.data == 1; ++t)
          for (std::size_t c = 0; c < own; ++c) ASSERT_EQ(many[rank].attended[t * own + c], one.attended[t * columns + rank * own + c]);
      }
    }
  }
}

// The state of all quantizers on each rank after some steps.
std::vector<std::vector<scaling::QuantizerState>> quantizers_on(const EngineConfig& config, const Mesh& mesh, int steps, double rate) {
  std::vector<std::vector<scaling::QuantizerState>> out;
  out.resize(std::size_t(mesh.all()));
  on_ranks(config, mesh, [&](Engine& e, int rank) {
    StepRunner runner = begin_steps(e);
    for (int s = 0; s < steps; ++s) runner.run(batches_of(s, e.ranks().rank(), mesh.data), {.learning_rate = rate});
    out[std::size_t(rank)] = e.precision.quantizer_states(e.stream);
  });
  return out;
}

// Row 0 of the maxima is that of a step that has begun: its weights are quantized, and its maxima not joined yet.
std::vector<float> past(const scaling::QuantizerState& q) { return {q.maxima.begin() + 1, q.maxima.end()}; }

TEST(TensorScales, FromPastMaximaAreThoseOfAllRanks) {
  for (const std::string recipe : {"delayed", "global"}) {
    const auto on = [&](const Mesh& mesh, int steps, double rate) { return quantizers_on(config_of(recipe, mesh), mesh, steps, rate); };
    const auto one = on({}, 1, 0)[0];
    for (const Mesh mesh : {Mesh{2, 1}, {4, 1}, {2, 2, 2}}) {
      const auto many = on(mesh, 3, 1e-2);
      const auto first = on(mesh, 1, 0)[0];
      for (std::size_t i = 0; i < one.size(); ++i) {
        const std::string what = format("{} {} of {}, {}", one[i].slot.path, name(one[i].slot.operand), recipe, mesh.text());
        for (const auto& of_rank : many) {
          EXPECT_EQ(past(of_rank[i]), past(many[0][i])) << what;
          EXPECT_EQ(of_rank[i].scales, many[0][i].scales) << what;
        }
        EXPECT_EQ(std::ranges::count(many[0][i].scales, 1.0f), 0) << what;
        EXPECT_TRUE(one[i].slot.operand != scaling::Operand::weight || past(first[i]) == past(one[i])) << what;
      }
    }
  }
}

}  // namespace
}  // namespace octet::train
