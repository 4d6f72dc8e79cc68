#include "octet/train/step/stage.hpp"

#include "octet/nn/linear.hpp"
#include "octet/ops/gemm/gemm.hpp"
#include "octet/parallel/pipeline/division.hpp"

namespace octet::train {
namespace {

// Of a layer's three GEMMs together.
parallel::Products products_of(Stream& dry, nn::LinearSite& l, std::int64_t tokens) {
  const Scope scope(dry);
  const bool values = l.reads_values({});  // of forward's rows
  const auto operands = [&](const ops::QuantizeSpec& spec, Shape shape, bool rows = true) {
    const bool quantizes = spec.quantizes();
    const ops::SinkRequest want{
        .shape = shape, .dtype = quantizes ? DType::bf16 : spec.format, .rows = rows, .cols = true, .keep_plain = quantizes && !rows};
    return nn::operands_of(ops::make_sink(dry, spec, want));
  };
  const std::int64_t rows = tokens * l.used();
  const QTensor x = operands(l.spec(scaling::Operand::activation, {}), {rows, l.in()}, !values),
                w = operands(l.weight().spec({}).of_matrix(0), {l.out(), l.in()}, !values);
  const QTensor dy = operands(l.spec(scaling::Operand::gradient, {}), {rows, l.out()});
  const Work before = dry.work();
  for (const auto& [a, b] : {std::pair(x.rows, w.rows), {dy.rows, w.cols}, {dy.cols, x.cols}})
    ops::gemm(dry, {.a = a, .b = b, .d = dry.empty({a.rows(), b.rows()}, DType::f32)});
  const Work all = dry.work() - before;
  const double in_8_bits = dry.apart_from_host() ? all.fp8_flops - all.emulated_flops : 0, per_product = 6 * double(tokens);
  return {.in_8_bits = in_8_bits / per_product, .in_16_bits = (all.gemm_flops - in_8_bits) / per_product};
}

// Of blocks and of the head, once per token that is predicted, with those of layers that predict further ones, which are beside it.
struct Count final : nn::Visitor {
  Count(Stream& stream, std::int64_t count, const models::ModelShape& s) : dry(stream), tokens(count), shape(s) {}
  void block(int number) override {
    now = number;
    if (in_block()) blocks.emplace_back();
  }
  void linear(nn::LinearSite& l) override {
    const parallel::Products more = products_of(dry, l, tokens);
    parallel::Products& sum = in_block() ? blocks.back() : head;
    const double times = now < 0 ? 1 + double(shape.mtp_depth) : 1;
    sum.in_8_bits += times * more.in_8_bits, sum.in_16_bits += times * more.in_16_bits;
  }
  bool in_block() const { return now >= 0 && now < shape.layers; }
  Stream& dry;
  std::int64_t tokens;
  const models::ModelShape& shape;
  std::vector<parallel::Products> blocks;
  parallel::Products head;
  int now = -1;
};

parallel::LayerCosts costs_of(const EngineConfig& c, const Target& target, WholeModel& whole) {
  Stream dry(Device::null, target);
  whole.precision.allocate(dry);
  Count n(dry, round_up(c.sequence, 16), c.shape);
  whole.model->visit(n);
  const double score_columns = double(c.shape.heads * c.shape.head_dim);
  n.head.in_16_bits += double(c.shape.mtp_depth) * double(c.sequence) * score_columns;
  return parallel::layer_costs(n.blocks, n.head, double(c.sequence), score_columns);
}

}  // namespace

WholeModel::WholeModel(const EngineConfig& c) : precision(c.precision) {
  models::ModelOptions whole = c.model;
  whole.chunks.clear(), whole.partition = &nn::whole_partition(), whole.experts = &nn::all_experts();
  model = models::make_model(c.shape, whole, precision);
  models::attach_adapters(*model, c.adapters, precision, nn::whole_partition(), draws);
}

std::vector<std::vector<models::ModelChunk>> chunks_of_stages(const EngineConfig& c, const Target& target) {
  WholeModel whole(c);
  return chunks_of_stages(c, target, whole);
}

std::vector<std::vector<models::ModelChunk>> chunks_of_stages(const EngineConfig& c, const Target& target, WholeModel& whole) {
  const parallel::PipelineShape shape = parallel::pipeline_shape(c.ranks.schedule, c.ranks.pipeline, c.ranks.chunks_of_stage(), 0);
  const std::vector<std::int64_t> division = parallel::divide_layers(c.shape.layers, shape.parts(), costs_of(c, target, whole));
  std::vector<std::vector<models::ModelChunk>> out(std::size_t(shape.stages));
  int first = 0;
  for (int part = 0; part < shape.parts(); ++part) {
    const int end = first + int(division[std::size_t(part)]);
    out[std::size_t(shape.stage_of(part))].push_back({first, end});
    first = end;
  }
  return out;
}

}  // namespace octet::train
