#include "octet/train/run/evaluation/evaluations.hpp"

#include "octet/train/step/evaluate.hpp"

namespace octet::train {

void Evaluations::run(Engine& engine, Recorder& recorder, Progress& at, bool (*stopped)()) {
  if (!held_out_ || at.last_eval_step == at.step) return;
  const Evaluation e = evaluate(engine, *held_out_, stopped);
  if (!e.whole) return;
  at.last_eval_step = at.step;
  at.eval_loss = e.loss;
  recorder.evaluation({.step = at.step, .loss = e.loss, .tokens = e.tokens},
                      format("step {}  eval loss {} over {} held-out tokens", at.step, fixed(e.loss, 4), grouped(e.tokens)));
}

void Evaluations::run_average(Engine& engine, Recorder& recorder, const Progress& at, bool (*stopped)()) {
  if (!held_out_ || !engine.average || engine.average->count() == 0) return;
  const AveragedWeights averaged(engine.stream, engine.parameters, *engine.average);
  const Evaluation e = evaluate(engine, *held_out_, stopped);
  if (!e.whole) return;
  average_loss_ = e.loss;
  recorder.evaluation(
      {.step = at.step, .loss = at.eval_loss, .tokens = e.tokens, .average_loss = e.loss},
      format("step {}  eval loss {} of the weights averaged over {} steps", at.step, fixed(e.loss, 4), engine.average->count()));
}

}  // namespace octet::train
