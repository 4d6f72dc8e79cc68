#pragma once

#include <string>

#include "octet/machine/constants.hpp"
#include "octet/optim/level.hpp"
#include "octet/parallel/pipeline/schedule.hpp"
#include "octet/plan/model.hpp"

namespace octet::plan {

/// The parts of a block that backward computes again.
enum class Recomputed : std::uint8_t { none, norms, block };  // norms: norms and the activation function
std::string to_text(Recomputed);

/// How a model is trained on several GPUs. Rank order: tensor, context, data, pipeline; experts use the ranks of tensor x context x data.
struct Layout {
  std::int64_t tensor = 1, pipeline = 1, context = 1, data = 1;
  std::int64_t experts = 1;  // ranks that divide the routed experts
  std::int64_t chunks = 1;   // of a pipeline stage
  bool deferred = false;     // gradients of weights, of a pipeline with one chunk per stage
  std::int64_t zero = 0;
  std::int64_t micro_batch = 1;  // sequences
  Recomputed recomputed = Recomputed::none;
  optim::Level level = optim::Level::O0;
  bool eight_bit = false;

  std::int64_t gpus() const { return tensor * pipeline * context * data; }
  /// Ranks among which ZeRO divides the state.
  std::int64_t shards() const { return data * context; }
  parallel::Schedule schedule() const {
    if (deferred) return parallel::Schedule::zero_bubble;
    return chunks > 1 ? parallel::Schedule::interleaved : parallel::Schedule::one_f_one_b;
  }
  bool operator==(const Layout&) const = default;
};
/// "tensor 4 x pipeline 2 x data 8, ZeRO-1, micro-batch 2", without axes of 1.
std::string to_text(const Layout&);

/// The work of a run and the machines for it.
struct Job {
  std::int64_t sequence = 0;   // tokens
  std::int64_t sequences = 0;  // per optimizer step, over all ranks
  std::int64_t gpus = 1;
  double memory = 0;  // bytes per GPU
  machine::MachineConstants machine;
  bool even_stages = false;  // of pipelines: equal numbers of layers, as other programs have

  std::int64_t per_node() const { return machine.devices_per_node; }
  double tokens() const { return double(sequence) * double(sequences); }
  std::int64_t micro_batches(const Layout& l) const { return sequences / (l.micro_batch * l.data); }
};

/// The shape of its pipeline.
parallel::PipelineShape pipeline_shape(const Layout&, const Job&);

/// Why this version of Octet does not train the layout, such as "it has no pipeline"; "" where it does.
std::string not_trained(const Layout&, const PlannedModel&);

/// The rule that the layout breaks, with the numbers: "tensor 4: model.heads = 14 must be a multiple of it"; "" where it is valid.
/// Source: reference on parallel layouts, section 6.2; Megatron-LM.
std::string broken_rule(const Layout&, const PlannedModel&, const Job&);

}  // namespace octet::plan
