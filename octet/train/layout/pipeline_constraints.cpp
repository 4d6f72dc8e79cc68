#include "octet/train/layout/constraint_parts.hpp"

namespace octet::train::constraints {
Constraints of_pipeline() {
  return {
      {always, pipeline, "Stages times chunks are at most the blocks.",
       [](const Layout& l, const Subject& s) { return l.pipeline * l.chunks <= s.shape.layers; },
       [](const Layout& l, const Subject& s) {
         return format(
             "model.layers = {} cannot be divided into {} parts; the largest number of ranks for ranks.pipeline_chunks = {} is {}",
             s.shape.layers, l.pipeline * l.chunks, l.chunks, s.shape.layers / l.chunks);
       }},
      {always, pipeline, "Stages have several chunks with `interleaved`, two with `dualpipe_v`, and one with other schedules.",
       [](const Layout& l, const Subject&) { return takes_chunks(l.schedule, l.chunks); },
       [](const Layout& l, const Subject&) {
         if (folds(l.schedule)) return format("ranks.pipeline_chunks = {}: stages of dualpipe_v have 2; leave the key out", l.chunks);
         if (l.chunks > 1) return format("ranks.pipeline_chunks = {} needs ranks.pipeline_schedule = \"interleaved\"", l.chunks);
         return std::string("ranks.pipeline_schedule = \"interleaved\" needs ranks.pipeline_chunks of at least 2");
       }},
      {always, schedule, "With `interleaved`, micro-batches are a multiple of the stages; with `dualpipe_v`, at least twice as many.",
       [](const Layout& l, const Subject& s) { return s.sequences == 0 || takes_micro_batches(l.schedule, s.pipeline(l)); },
       [](const Layout& l, const Subject& s) {
         return format("train.accumulate = {} must be {} ranks.pipeline = {}; set it to {}", s.micro_batches(l),
                       folds(l.schedule) ? "at least twice" : "a multiple of", l.pipeline, next_micro_batches(l.schedule, s.pipeline(l)));
       }},
      {planned, schedule, "The schedule is not `dualpipe_v`, which was not measured on GPUs.",
       [](const Layout& l, const Subject&) { return l.schedule != Schedule::dualpipe_v; },
       says("it was not measured on GPUs; predict it by --layout schedule=dualpipe_v")},
      {always, pipeline, "ZeRO-2 and 3 are not used, since micro-batches are in flight.",
       [](const Layout& l, const Subject&) { return l.zero < 2; },
       [](const Layout& l, const Subject&) {
         return format("ranks.zero = {}: gradients and weights of micro-batches in flight cannot be divided; set ranks.zero = 1", l.zero);
       }},
      {planned, chunks, "Chunks are those of a pipeline.", [](const Layout& l, const Subject&) { return l.pipeline > 1; },
       says("chunks need a pipeline; set ranks.pipeline, or 1 chunk")},
      {here, pipeline, "The family's models can be cut into stages.",
       [](const Layout&, const Subject& s) { return s.family() != nullptr && s.part().model->has_chunks(); },
       [](const Layout&, const Subject& s) {
         return format("models of the family {} cannot be cut into stages; set it to 1", s.shape.family);
       }},
  };
}

}  // namespace octet::train::constraints
