#include "octet/plan/layout.hpp"

#include <algorithm>

#include "octet/base/text.hpp"
#include "octet/models/division.hpp"
#include "octet/models/registry.hpp"

namespace octet::plan {

std::string to_text(Recomputed r) {
  constexpr const char* names[] = {"none", "norms", "block"};
  return names[std::size_t(r)];
}

std::string to_text(const Layout& l) {
  std::string out;
  const auto axis = [&](const char* name, std::int64_t size) {
    if (size > 1) out += format("{}{} {}", out.empty() ? "" : " x ", name, size);
  };
  axis("tensor", l.tensor), axis("pipeline", l.pipeline), axis("context", l.context), axis("data", l.data);
  if (out.empty()) out = "one GPU";
  if (l.chunks > 1) out += format(", {} chunks", l.chunks);
  if (l.deferred) out += ", zero bubble";
  if (l.experts > 1) out += format(", experts over {}", l.experts);
  if (l.zero > 0) out += format(", ZeRO-{}", l.zero);
  out += format(", micro-batch {}", l.micro_batch);
  if (l.recomputed != Recomputed::none) out += format(", {} recomputed", to_text(l.recomputed));
  return out;
}

parallel::PipelineShape pipeline_shape(const Layout& l, const Job& job) {
  return {.stages = int(l.pipeline), .chunks = int(l.chunks), .micro_batches = int(job.micro_batches(l))};
}

namespace {

// "" if value is a multiple of `of`.
std::string multiple(const char* name, std::int64_t value, const char* axis, std::int64_t of) {
  return value % of == 0 ? "" : format("{} = {} is not a multiple of {} {}", name, value, axis, of);
}

std::string tensor_rule(const Layout& l, const PlannedModel& m, const Job& job) {
  if (l.tensor > job.per_node()) return format("tensor {} is more than the {} GPUs of a node", l.tensor, job.per_node());
  const std::string fault = models::broken_division(m.shape, l.tensor);
  return fault.empty() ? "" : format("tensor {}: {}", l.tensor, fault);
}

std::string tokens_rule(const Layout& l, const Job& job) {
  if (l.context > 1 && job.sequence % (2 * l.context) != 0)
    return format("the sequence of {} tokens is not a multiple of 2 x context {}", job.sequence, l.context);
  if (job.sequence % (l.tensor * l.context) != 0)
    return format("the sequence of {} tokens is not a multiple of tensor {} x context {}", job.sequence, l.tensor, l.context);
  if (job.sequences % (l.micro_batch * l.data) != 0)
    return format("{} sequences per step are not a multiple of micro-batch {} x data {}", job.sequences, l.micro_batch, l.data);
  return "";
}

// GEMMs of 8-bit codes need local sizes in multiples of 16.
std::string eight_bit_rule(const Layout& l, const PlannedModel& m, const Job& job) {
  if (!l.eight_bit) return "";
  const std::int64_t tokens = l.micro_batch * job.sequence / (l.tensor * l.context);
  const std::int64_t keys = std::max<std::int64_t>(1, m.shape.kv_heads / l.tensor) * m.shape.head_dim;
  for (const auto& [name, size] : {std::pair("hidden columns", m.shape.hidden / l.tensor),
                                   {"query columns", m.query_columns() / l.tensor},
                                   {"key columns", keys},
                                   {"tokens of a micro-batch", tokens}})
    if (size % 16 != 0) return format("{} {} of one GPU are not a multiple of 16, as 8-bit GEMMs need", size, name);
  return "";
}

std::string pipeline_rule(const Layout& l, const PlannedModel& m, const Job& job) {
  if (l.pipeline * l.chunks > m.layers())
    return format("pipeline {} x {} chunks is more than the {} layers", l.pipeline, l.chunks, m.layers());
  if (l.chunks > 1 && l.pipeline == 1) return "chunks need a pipeline";
  if (l.chunks > 1 && job.micro_batches(l) % l.pipeline != 0)
    return format("{} micro-batches are not a multiple of pipeline {}, as the interleaved schedule needs", job.micro_batches(l),
                  l.pipeline);
  if (l.deferred && (l.pipeline == 1 || l.chunks > 1)) return "the zero_bubble schedule needs a pipeline with one chunk per stage";
  if (l.deferred && job.micro_batches(l) < l.pipeline)
    return format("{} micro-batches are less than pipeline {}, as the zero_bubble schedule needs", job.micro_batches(l), l.pipeline);
  if (l.pipeline > 1 && l.zero > 1)
    return format("ZeRO-{} exchanges gradients in every micro-batch, which a pipeline does not allow", l.zero);
  return "";
}

std::string expert_rule(const Layout& l, const PlannedModel& m) {
  if (l.experts == 1) return "";
  if (m.experts.count == 0) return "the model has no experts";
  if (const std::string fault = multiple("experts", m.experts.count, "expert ranks", l.experts); !fault.empty()) return fault;
  return multiple("tensor x context x data", l.tensor * l.context * l.data, "expert ranks", l.experts);
}

}  // namespace

std::string not_trained(const Layout& l, const PlannedModel& m) {
  if (m.experts.count > 0) return "it trains no models with experts";
  const auto& families = models::model_families();
  const auto family = std::find_if(families.begin(), families.end(), [&](const auto& f) { return f.name == m.shape.family; });
  if (l.context > 1 && (family == families.end() || !family->rotary)) return "it does not divide sequences of this family";
  if (l.tensor == 1) return "";
  if (l.pipeline > 1 && m.shape.tied) return "a tied embedding on both ends of a pipeline has no parts";
  if (family == families.end() || !family->divides) return "it does not divide layers of this family";
  // From stage 2 on, values of one micro-batch are summed.
  if (l.tensor > m.shape.kv_heads && l.level != optim::Level::O0 && l.zero < 2)
    return "copies of key heads need gradients of more than 8 bits";
  return "";
}

std::string broken_rule(const Layout& l, const PlannedModel& m, const Job& job) {
  if (l.gpus() != job.gpus) return format("{} GPUs are not tensor x pipeline x context x data = {}", job.gpus, l.gpus());
  if (l.zero > 0 && l.shards() == 1) return format("ZeRO-{} has nothing to divide: data x context = 1", l.zero);
  for (const std::string& fault :
       {tensor_rule(l, m, job), tokens_rule(l, job), eight_bit_rule(l, m, job), pipeline_rule(l, m, job), expert_rule(l, m)})
    if (!fault.empty()) return fault;
  return "";
}

}  // namespace octet::plan
