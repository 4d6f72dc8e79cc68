#include "octet/train/step/stage.hpp"

#include "octet/parallel/pipeline/division.hpp"

namespace octet::train {
namespace {

// Of a block and of the head.
struct Parameters final : nn::Visitor {
  double of_block = 0, of_head = 0;
  int now = -1;
  void block(int number) override { now = number; }
  void linear(nn::Linear& l) override {
    if (now == 0) of_block += double(l.in() * l.out());
    if (now < 0) of_head += double(l.in() * l.out());
  }
};

parallel::LayerCosts costs_of(const EngineConfig& c) {
  Parameters n;
  visit_whole_model(c, n);
  return parallel::layer_costs(n.of_block, n.of_head, double(c.sequence), double(c.shape.heads * c.shape.head_dim));
}

void require_options(const EngineConfig& c) {
  const auto refuse = [&](const std::string& why) { throw ConfigError(format("ranks.pipeline = {}: {}", c.ranks.pipeline, why)); };
  const std::int64_t parts = c.ranks.pipeline * c.ranks.chunks;
  if (c.shape.layers < parts)
    refuse(format("model.layers = {} cannot be divided into {} parts; the largest number of ranks for ranks.pipeline_chunks = {} is {}",
                  c.shape.layers, parts, c.ranks.chunks, c.shape.layers / c.ranks.chunks));
  if (c.ranks.schedule == parallel::Schedule::interleaved && c.ranks.chunks == 1)
    refuse("ranks.pipeline_schedule = \"interleaved\" needs ranks.pipeline_chunks of at least 2");
  if (c.ranks.schedule != parallel::Schedule::interleaved && c.ranks.chunks > 1)
    refuse(format("ranks.pipeline_chunks = {} needs ranks.pipeline_schedule = \"interleaved\"", c.ranks.chunks));
  if (c.ranks.zero > 1)
    refuse(format("ranks.zero = {}: gradients and weights of micro-batches in flight cannot be divided; set ranks.zero = 1", c.ranks.zero));
  if (c.average) refuse("train.average keeps means of whole weights; set it to 0");
  if (c.optimizer && c.comm.has_mu(c.optimizer->storage().gradients))
    refuse(
        "factors mu of e4m3_shared are kept by the rank that saves all; set comm.gradients = \"e4m3\" and optim.gradients to another "
        "storage");
  if (c.shape.tied && c.ranks.tensor > 1)
    refuse("with ranks.tensor > 1, a tied embedding would have copies and parts; choose one of the two");
}

}  // namespace

void visit_whole_model(const EngineConfig& c, nn::Visitor& visitor) {
  scaling::Precision precision(c.precision);
  models::ModelOptions whole = c.model;
  whole.chunks.clear(), whole.partition = &nn::whole_partition();
  const auto model = models::make_model(c.shape, whole, precision);
  if (!model->has_chunks())
    throw ConfigError(
        format("ranks.pipeline = {}: models of the family {} cannot be cut into stages; set it to 1", c.ranks.pipeline, c.shape.family));
  model->visit(visitor);
}

std::vector<models::Chunk> chunks_of_stage(const EngineConfig& c, int stage) {
  require_options(c);
  const int stages = int(c.ranks.pipeline), parts = stages * int(c.ranks.chunks);
  const std::vector<std::int64_t> division = parallel::divide_layers(c.shape.layers, parts, costs_of(c));
  std::vector<models::Chunk> out;
  int first = 0;
  for (int part = 0; part < parts; ++part) {
    const int end = first + int(division[std::size_t(part)]);
    if (part % stages == stage) out.push_back({first, end});
    first = end;
  }
  return out;
}

}  // namespace octet::train
