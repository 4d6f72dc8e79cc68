#include <gtest/gtest.h>

#include "octet/comm/threads/threads.hpp"
#include "octet/nn/gathered.hpp"
#include "octet/nn/parameters.hpp"
#include "octet/nn/weight_scales.hpp"
#include "octet/ops/quantize/quantize.hpp"
#include "octet/parallel/tensor_group.hpp"
#include "tests/testing/tensors.hpp"

// Operands of a layer of which ranks have columns each, against those that one rank makes of the same values.

namespace octet::parallel {
namespace {

constexpr scaling::Pass pass{.kind = scaling::Pass::Kind::train};
constexpr std::int64_t tokens = 40, columns = 256;  // 40 is no multiple of 16

// Columns of one matrix [tokens, columns], of which the last has the largest values.
Tensor own_values(Stream& stream, int part, int parts, DType dtype) {
  const std::vector<float> all = testing::gaussian(std::size_t(tokens * columns), 3);
  const std::int64_t n = columns / parts;
  std::vector<float> own;
  for (std::int64_t t = 0; t < tokens; ++t)
    for (std::int64_t c = part * n; c < (part + 1) * n; ++c) own.push_back(all[std::size_t(t * columns + c)] * float(1 + c));
  return testing::tensor_of(stream, own, {tokens, n}, dtype);
}

// Layers that train: their weights have gradients.
struct Two {
  nn::Linear &reads, &makes;
  void visit(nn::Visitor& v) { reads.visit(v), makes.visit(v); }
};

struct Operand {
  float descale = 0;
  std::vector<float> values;  // [columns, tokens]: decoded codes

  friend bool operator==(const Operand&, const Operand&) = default;
};

// One after the other, those of all parts are those of the whole matrix. `turned`: the parts are rows of q.
void add(Operand& all, const Quantized& q, bool turned) {
  EXPECT_TRUE(all.values.empty() || all.descale == *q.descales.f32()) << "parts have several scales";
  all.descale = *q.descales.f32();
  for (std::int64_t i = 0; i < (turned ? q.rows() : q.cols()); ++i)
    for (std::int64_t j = 0; j < (turned ? q.cols() : q.rows()); ++j) all.values.push_back(turned ? value_at(q, i, j) : value_at(q, j, i));
}

// work() by each rank, one after the other.
template <class Work>
void in_turn(Stream& stream, comm::Communicator& ranks, const Work& work) {
  for (int turn = 0; turn < ranks.size(); ++turn) {
    ranks.barrier(stream);
    if (turn == ranks.rank()) work();
  }
}

struct Operands {
  Operand x_rows, x_cols, rebuilt, dy_rows, dy_cols, filled;
  bool operator==(const Operands&) const = default;
};

// Of all parts, by as many ranks.
Operands operands_of(int parts, const scaling::PrecisionConfig& config) {
  Operands out;
  comm::run_on_threads({.ranks = parts, .limit_seconds = 30}, [&](comm::Communicator& ranks) {
    Stream stream(Device::cpu);
    TensorGroup partition(ranks, TensorWire::activations);
    scaling::Precision precision(config);
    nn::Linear reads("reads", {.in = columns / parts, .out = 64}, precision), makes("makes", {.in = 64, .out = columns / parts}, precision);
    precision.allocate(stream);
    Two model{reads, makes};
    const nn::Parameters parameters(stream, model, true);
    const Scope scope(stream), kept(stream, pass.keep);
    const Tensor x = own_values(stream, ranks.rank(), parts, DType::bf16);
    const QTensor operands = nn::quantized(stream, reads, {.values = x}, pass, partition).codes;
    const Quantized rebuilt = nn::quantized(stream, reads, {.rows = false, .values = x}, pass, partition).codes.cols;
    const ops::Sink dy = nn::quantized(stream, makes, {.tensor = nn::Operand::gradient, .values = x}, pass, partition);
    ops::Sink filled = makes.operand(stream, {.tensor = nn::Operand::gradient, .tokens = tokens}, pass);
    fill_divided(stream, partition, filled, [&](ops::Sink& y) { ops::quantize(stream, x, y); });
    in_turn(stream, ranks, [&] {
      add(out.x_rows, operands.rows, false), add(out.x_cols, operands.cols, true), add(out.rebuilt, rebuilt, true);
      add(out.dy_rows, dy.codes.rows, false), add(out.dy_cols, dy.codes.cols, true), add(out.filled, filled.codes.rows, false);
    });
  });
  return out;
}

class TensorOperands : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Recipes, TensorOperands, ::testing::Values("current", "delayed", "global"));

TEST_P(TensorOperands, HaveTheCodesAndTheScaleOfOneRank) {
  const scaling::PrecisionConfig config{.recipe = GetParam()};
  const Operands one = operands_of(1, config);
  ASSERT_EQ(one.x_rows.values.size(), std::size_t(tokens * columns));
  EXPECT_EQ(one.filled, one.dy_rows);
  for (const int parts : {2, 4}) EXPECT_TRUE(operands_of(parts, config) == one) << parts;
}

// x and dy of a layer of which ranks have rows each, as the first of so many ranks has all of it.
std::vector<std::vector<float>> gathered_by(int parts, const scaling::PrecisionConfig& config) {
  std::vector<std::vector<float>> out;
  comm::run_on_threads({.ranks = parts, .limit_seconds = 30}, [&](comm::Communicator& ranks) {
    Stream stream(Device::cpu);
    TensorGroup partition(ranks, TensorWire::activations);
    scaling::Precision precision(config);
    nn::Linear reads("reads", {.in = columns, .out = 64}, precision), makes("makes", {.in = 64, .out = columns}, precision);
    precision.allocate(stream);
    Two model{reads, makes};
    const nn::Parameters parameters(stream, model, true);
    const Scope scope(stream), kept(stream, pass.keep);
    const std::int64_t rows = 64 / parts;
    const Tensor own = testing::gaussian_tensor(stream, {64, columns}, 3, DType::bf16).rows(rows * ranks.rank(), rows);
    const auto produce = [&](ops::Sink& sink) { ops::quantize(stream, own, sink); };
    for (const nn::Gather& g : {nn::gather_operands(stream, reads, partition, {.values = own}, pass),
                                nn::gather_operands(stream, reads, partition, {.rows = false, .values = own}, pass),
                                nn::gather_operands(stream, makes, partition, {.tensor = nn::Operand::gradient, .values = own}, pass),
                                nn::gather_produced(stream, reads, partition, {.tokens = rows}, pass, produce)}) {
      g.fill(stream);
      if (ranks.rank() > 0) continue;
      for (const Quantized* q : {&g.operands.codes.rows, &g.operands.codes.cols}) {
        out.emplace_back();
        for (std::int64_t i = 0; i < (*q ? q->rows() : 0); ++i)
          for (std::int64_t j = 0; j < q->cols(); ++j) out.back().push_back(value_at(*q, i, j));
      }
    }
  });
  return out;
}

TEST_P(TensorOperands, OfGatheredRowsAreThoseOfOneRank) {
  const scaling::PrecisionConfig config{.recipe = GetParam()};
  const auto one = gathered_by(1, config);
  EXPECT_EQ(one[0], one[6]) << "produced, and there";
  EXPECT_EQ(one[1], one[3]) << "both, and the columns alone";
  for (const int parts : {2, 4}) EXPECT_EQ(gathered_by(parts, config), one) << parts;
}

TEST(TensorOperands, WouldHaveOtherScalesByTheirOwnMaxima) {
  const scaling::PrecisionConfig config{.recipe = "current"};
  const auto own_scale = [&](int part) {
    Stream stream(Device::cpu);
    scaling::Precision precision(config);
    nn::Linear reads("reads", {.in = columns / 2, .out = 64}, precision);
    precision.allocate(stream);
    const Scope scope(stream), kept(stream, pass.keep);
    return *nn::quantized(stream, reads, {.values = own_values(stream, part, 2, DType::bf16)}, pass).codes.rows.descales.f32();
  };
  EXPECT_LT(own_scale(0), own_scale(1));
}

// Of rows of one matrix [columns, 64], in both orientations, before and after it changes.
std::vector<Operand> weights_of(int parts, scaling::WeightCodes codes, Storage storage) {
  std::vector<Operand> out(4);
  comm::run_on_threads({.ranks = parts, .limit_seconds = 30}, [&](comm::Communicator& ranks) {
    Stream stream(Device::cpu);
    TensorGroup group(ranks, TensorWire::activations);
    scaling::Precision precision({.recipe = "current", .weights = codes});
    nn::Linear layer("layer", {.in = 64, .out = own_range(group, columns).count, .cut = own_rows(group, {columns, 64})}, precision);
    nn::Parameters parameters(stream, layer, false, {.values = storage});
    precision.allocate(stream);
    nn::WeightScales scales(stream, group, layer);
    std::vector<float> whole = testing::gaussian(std::size_t(columns * 64), 5);
    for (std::size_t i = 0; i < whole.size(); ++i) whole[i] *= float(1 + i / 64);
    for (const std::size_t version : {0, 1}) {
      for (float& w : whole) w *= 3;
      parameters.set_values(stream, 0, nn::part_of(layer.weight().parameter().cut, whole).data());
      layer.weight().refresh(stream, pass);
      const Scope scope(stream);
      const Quantized rows = layer.weight().operand(stream, nn::Weight::Side::rows),
                      cols = layer.weight().operand(stream, nn::Weight::Side::cols);
      in_turn(stream, ranks, [&] { add(out[2 * version], rows, true), add(out[2 * version + 1], cols, false); });
    }
  });
  return out;
}

TEST(WeightScales, AreThoseOfTheWholeMatrixAndSoAreTheCodes) {
  for (const auto codes : {scaling::WeightCodes::cached, scaling::WeightCodes::on_demand})
    for (const Storage storage : {Storage::f32, Storage::bf16}) {
      const std::vector<Operand> one = weights_of(1, codes, storage);
      EXPECT_EQ(one[0].values.size(), std::size_t(columns * 64));
      EXPECT_NE(one[0].descale, one[2].descale) << "it changed";
      for (const int parts : {2, 4}) EXPECT_TRUE(weights_of(parts, codes, storage) == one) << parts << " parts, " << name(storage);
    }
}

}  // namespace
}  // namespace octet::parallel
