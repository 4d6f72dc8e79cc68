#pragma once

#include <algorithm>
#include <functional>

#include "octet/plan/job.hpp"
#include "octet/plan/software.hpp"

namespace octet::plan {

/// Bytes of one GPU of a pipeline stage.
struct StageMemory {
  double weights = 0, operands = 0, gradients = 0, optimizer = 0;
  double activations = 0;  // saved for backward, of all micro-batches in flight
  double working = 0;      // logits, temporaries, workspaces
  double overhead = 0;     // outside of tensors

  double total() const { return weights + operands + gradients + optimizer + activations + working + overhead; }
};

/// Memory of the first and of the last stage, the largest two. With one stage both are equal.
struct LayoutMemory {
  StageMemory first, last;
  const StageMemory& largest() const { return std::ranges::max(first, last, {}, &StageMemory::total); }
  /// The largest works with more memory, if it then has so many bytes.
  void raise_to(double bytes) { (&largest() == &first ? first : last).working += std::max(0.0, bytes - largest().total()); }
};

/// Bytes of one GPU that do not depend on the division into stages: per layer, and of embedding and head. The source measures or computes
/// them; stage_memory() adds them up.
struct LayerMemory {
  StageMemory layer;         // per layer: states, and activations of one micro-batch
  StageMemory embedding;     // states of the first stage besides its layers
  StageMemory head;          // of the last stage; with one stage the embedding of a tied head is not counted again
  StageMemory ahead;         // of layers that predict further tokens, on the stage with the head, of one micro-batch
  StageMemory rest;          // of every stage
  double head_working = 0;   // of the last stage
  double fragmentation = 0;  // of all tensors
};

/// Where LayerMemory comes from.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  virtual LayerMemory layer_memory(const Layout&) = 0;
  /// Bytes of one GPU that a run of this layout needs to the byte; 0 where the source cannot tell.
  virtual double needed(const Layout&) { return 0; }
};

/// The assumptions that hold for a layout.
using ProgramOf = std::function<Software(const Layout&)>;

/// By formula, from the assumptions on a program. Source: Korthikanti et al. 2022, table 2, without dropout's masks, for any MLP and
/// grouped heads; reference on parallel layouts, section 6.3.
class FormulaMemory : public MemorySource {
 public:
  FormulaMemory(const PlannedModel& model, const Job& job, ProgramOf program) : model_(model), job_(job), program_(std::move(program)) {}
  LayerMemory layer_memory(const Layout&) override;

 private:
  PlannedModel model_;
  Job job_;
  ProgramOf program_;
};

/// Of one GPU: the parameters of a layer besides routed experts, averaged over layers, and the ranks that divide the state of routed ones.
double rank_parameters(const PlannedModel&, const Layout&, const Software&);
std::int64_t shards_of_stacks(const Layout&, const Software&);

/// Bytes per token and layer that backward needs, of one GPU with tensor = context = 1.
double saved_bytes_per_token(const PlannedModel&, Recomputed, bool eight_bit);

/// The same of all layers that predict further tokens, with the inputs and outputs that they keep besides those of their blocks.
double saved_bytes_ahead(const PlannedModel&, Recomputed, bool eight_bit);

/// Operands of the products of weights' gradients, bytes per token and layer of one GPU: those that forward saves; all of them, with those
/// that are recomputed and the gradients of outputs; and those that backward makes and would have at one time if it deferred none. Tensor
/// ranks gather rows of D columns:
///
///   queries, keys, values; MLP's first layer    x: D, D              dy: (H + 2 Hkv) d / t, 2 F / t (F with GELU)
///   attention's output; MLP's second layer      x: H d / t, F / t    dy: D, D
struct DeferredBytes {
  double saved = 0, all = 0, at_once = 0;
};
DeferredBytes deferred_bytes_per_token(const PlannedModel&, const Layout&);

/// Of the activations of a micro-batch between two parts of a pipeline, in BF16, on one GPU.
double border_bytes(const PlannedModel&, const Layout&, const Job&);

/// The layers of each stage of the pipeline, all its chunks together: divided by their operations, with the head counted.
std::vector<std::int64_t> layers_of_stages(const PlannedModel&, const Layout&, const Job&);

/// Whether the stage with the head has a copy of the embedding beside it, which further tokens read.
bool has_second_embedding(const PlannedModel&, const Layout&);

/// Both ends of the pipeline: layers of the stage, and micro-batches in flight by the schedule.
LayoutMemory stage_memory(const LayerMemory&, const PlannedModel&, const Layout&, const Job&);

}  // namespace octet::plan
