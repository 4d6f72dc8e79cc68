#include "octet/parallel/ranks_config.hpp"

#include "octet/base/text.hpp"

namespace octet::parallel {

void RanksConfig::fields(config::FieldVisitor& v) {
  constexpr auto may_change = config::OnResume::may_change;
  v.field("data", data, "ranks that train one model, each on sequences of its own; 0: all that were started, or one",
          {.at_least = 0, .at_most = 1024}, may_change);
  v.field("tensor", tensor, "ranks that divide heads, MLP and vocabulary of each layer, and train on the same sequences",
          {.at_least = 1, .at_most = 1024}, may_change);
  v.field("context", context, "ranks that have parts of the same sequences, and exchange keys and values", {.at_least = 1, .at_most = 1024},
          may_change);
  v.field("expert", expert,
          "of the data ranks, so many neighbours divide the experts of each layer, and send the rows of tokens to each other",
          {.at_least = 1, .at_most = 1024}, may_change);
  v.field("expert_room", expert_room,
          "with ranks.expert: memory for the rows of a rank's experts, as a multiple of those at equal loads; more rows are computed in "
          "rounds; at least 1; 0: memory for the worst choice of a router",
          {.at_least = 0, .at_most = 1024}, may_change);
  v.field("pipeline", pipeline, "stages of consecutive blocks, each on ranks of its own, through which micro-batches pass",
          {.at_least = 1, .at_most = 1024}, may_change);
  v.choice("pipeline_schedule", schedule, "order in which a stage computes its micro-batches",
           {{"gpipe", Schedule::gpipe},
            {"1f1b", Schedule::one_f_one_b},
            {"interleaved", Schedule::interleaved},
            {"zero_bubble", Schedule::zero_bubble},
            {"dualpipe_v", Schedule::dualpipe_v}},
           may_change);
  v.field("pipeline_chunks", chunks, "parts of consecutive blocks per stage; above 1 for interleaved; dualpipe_v has 2",
          {.at_least = 1, .at_most = 1024}, may_change);
  v.field("zero", zero,
          "stage of ZeRO: 0 every rank keeps the whole state; 1 divides moments and master weights, 2 also sums of gradients, 3 also "
          "weights (FSDP)",
          {.at_least = 0, .at_most = 3}, may_change);
  v.field("shard", shard,
          "with ranks.zero: so many neighbours divide the state, and other groups have copies of it (HSDP, shard group size); 0: all data "
          "and context ranks divide it",
          {.at_least = 0, .at_most = 1 << 20}, may_change);
  v.field("limit_seconds", limit_seconds, "how long a rank waits for another before the run ends", {.at_least = 0.1, .at_most = 86400},
          may_change);
}

std::vector<comm::Axis> RanksConfig::axes_beside_data() const {
  std::vector<comm::Axis> axes{{"tensor", int(tensor)}, {"context", int(context)}, {"pipeline", int(pipeline)}};
  std::erase_if(axes, [](const comm::Axis& a) { return a.size == 1; });
  return axes;
}

std::string RanksConfig::axes_text() const {
  std::vector<std::string> texts;
  for (const comm::Axis& a : axes_beside_data()) texts.push_back(format("ranks.{} = {}", a.name, a.size));
  return joined(texts, " and ");
}

void CommConfig::fields(config::FieldVisitor& v) {
  constexpr auto may_change = config::OnResume::may_change;
  v.choice("gradients", gradients, "how gradients travel between ranks; stored: as optim.gradients says",
           {{"stored", Wire::stored},
            {"f32", Wire::f32},
            {"bf16", Wire::bf16},
            {"e4m3", Wire::e4m3},
            {"e4m3_shared", Wire::e4m3_shared},
            {"e4m3_prescaled", Wire::e4m3_prescaled},
            {"e4m3_postscaled", Wire::e4m3_postscaled}},
           may_change);
  v.choice("mu_growth", mu_growth, "when the factor mu of e4m3_shared grows: while no sum saturates, or while few do, as published",
           {{"at_zero", ops::MuGrowth::at_zero}, {"below_threshold", ops::MuGrowth::below_threshold}}, may_change);
  v.choice("tensor", tensor, "how partial sums of activations travel between ranks.tensor ranks; bf16: as f32 under a recipe of f32",
           {{"bf16", TensorWire::activations}, {"e4m3", TensorWire::e4m3}}, may_change);
  v.field("turns", turns,
          "with ranks.tensor or ranks.expert: whether the backward of a micro-batch and the forward of the next one take turns, so that "
          "each computes while "
          "the other exchanges activations; two micro-batches then have saved activations",
          may_change);
  v.choice("pipeline", pipeline,
           "how activations and their gradients travel between stages of ranks.pipeline; bf16: as f32 under a recipe of f32",
           {{"bf16", TensorWire::activations}, {"e4m3", TensorWire::e4m3}}, may_change);
  v.choice("experts", experts,
           "how rows travel to experts on other ranks; recipe: as codes where the layer reads codes with a scale per 128 values of a row; "
           "bf16: as f32 under a recipe of f32",
           {{"recipe", ExpertWire::recipe}, {"bf16", ExpertWire::activations}, {"e4m3", ExpertWire::e4m3}}, may_change);
  v.field("overlap", overlap,
          "whether GPUs exchange gradients, weights and activations while they compute; false: they wait for each exchange", may_change);
  v.field("peer_memory", peer_memory,
          "whether GPUs of one machine exchange large tensors through each other's memory, by copy engines; false: through NCCL",
          may_change);
}

bool CommConfig::has_mu(Storage of) const { return wire_of(gradients, of) == Wire::e4m3_shared; }

}  // namespace octet::parallel
