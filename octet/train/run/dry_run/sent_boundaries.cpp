#include "octet/train/run/dry_run/sent_boundaries.hpp"

#include "octet/train/step/stage.hpp"

namespace octet::train {
namespace {

std::string text_of(const std::vector<models::ModelChunk>& chunks) {
  std::string out;
  for (const models::ModelChunk& c : chunks) out += format("{}{} to {}", out.empty() ? "" : " and ", c.first, c.end - 1);
  return out;
}

}  // namespace

std::vector<scaling::PlanRow> plan_of_stages(Engine& engine, const EngineConfig& c) {
  if (!engine.axes.has_stages()) return {};
  std::vector<scaling::PlanRow> rows;
  const auto chunks = chunks_of_stages(c, engine.stream.target());
  const parallel::PipelineShape shape = parallel::pipeline_shape(c.ranks.schedule, c.ranks.pipeline, c.ranks.chunks_of_stage(), 0);
  const int stages = shape.stages, last = shape.stage_of(shape.parts() - 1);
  for (int s = 0; s < stages; ++s)
    rows.push_back({format("stage {} of {}", s, stages), 0, 0, std::string(to_text(c.ranks.schedule)),
                    format("blocks {}{}{}", text_of(chunks[std::size_t(s)]), s == 0 ? ", after the embedding" : "",
                           s == last ? ", before the head" : "")});
  const bool coded = c.comm.pipeline == parallel::TensorWire::e4m3;
  rows.push_back({"stage boundaries", 0, 0, coded ? "e4m3" : to_text(engine.precision.activations()),
                  coded ? "comm.pipeline: activations and their gradients, with a scale per 128 values"
                        : "activations and their gradients, as they are"});
  if (engine.optimizer && engine.stream.apart_from_host())
    rows.push_back({"computation of stages", 0, 0, "recorded graphs",
                    engine.axes.data().size() > 1 ? "all micro-batches but a step's last one, beside which gradients are exchanged"
                                                  : "all micro-batches"});
  return rows;
}

}  // namespace octet::train
