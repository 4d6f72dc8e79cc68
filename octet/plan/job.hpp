#pragma once

#include "octet/plan/model.hpp"
#include "octet/plan/network.hpp"
#include "octet/train/layout/layout.hpp"

namespace octet::plan {

using train::Layout;
using train::Recomputed;

/// The work of a run and the machines for it.
struct Job {
  std::int64_t sequence = 0;   // tokens
  std::int64_t sequences = 0;  // per optimizer step, over all ranks
  std::int64_t gpus = 1;
  double memory = 0;  // bytes per GPU
  machine::MachineConstants machine;
  double expert_load = 1;    // rows of the most loaded rank's experts over the mean; 1: tokens choose evenly
  bool even_stages = false;  // of pipelines: equal numbers of layers, as other programs have

  std::int64_t per_node() const { return machine.devices_per_node; }
  Network network() const { return Network(machine); }
  double tokens() const { return double(sequence) * double(sequences); }
  std::int64_t micro_batches(const Layout& l) const { return sequences / (l.micro_batch * l.sequence_groups()); }
};

/// The shape of its pipeline.
inline parallel::PipelineShape pipeline_shape(const Layout& l, const Job& job) {
  parallel::PipelineShape out = parallel::pipeline_shape(l.schedule, l.pipeline, l.chunks, job.micro_batches(l));
  out.pairs = out.folded && l.experts > 1;
  return out;
}

}  // namespace octet::plan
