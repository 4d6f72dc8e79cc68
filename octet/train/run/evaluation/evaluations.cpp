#include "octet/train/run/evaluation/evaluations.hpp"

#include "octet/train/step/evaluate.hpp"

namespace octet::train {
namespace {

std::string over(const Evaluation& e) {
  if (!e.preferences.known()) return format("over {} held-out tokens", grouped(e.tokens));
  return format("over {} held-out pairs, margin {}, accuracy {}%", grouped(e.tokens), fixed(e.preferences.margin(), 4),
                fixed(100 * e.preferences.accuracy, 1));
}

}  // namespace

void Evaluations::run(Engine& engine, Recorder& recorder, Progress& at, bool (*stopped)()) {
  if (!held_out_ || at.last_eval_step == at.step) return;
  const Evaluation e = evaluate(engine, *held_out_, stopped, references_);
  if (!e.whole) return;
  at.last_eval_step = at.step;
  at.eval_loss = e.loss;
  recorder.evaluation({.step = at.step, .loss = e.loss, .tokens = e.tokens, .preferences = e.preferences},
                      format("step {}  eval loss {} {}", at.step, fixed(e.loss, 4), over(e)));
}

void Evaluations::run_average(Engine& engine, Recorder& recorder, const Progress& at, bool (*stopped)()) {
  if (!held_out_ || !engine.average || engine.average->count() == 0) return;
  AveragedWeights averaged(engine.stream, engine.parameters, engine.sharding.weights(), *engine.average);
  const Evaluation e = evaluate(engine, *held_out_, stopped, references_);
  averaged.end();
  if (!e.whole) return;
  average_loss_ = e.loss;
  recorder.evaluation(
      {.step = at.step, .loss = at.eval_loss, .tokens = e.tokens, .average_loss = e.loss, .preferences = e.preferences},
      format("step {}  eval loss {} of the weights averaged over {} steps", at.step, fixed(e.loss, 4), engine.average->count()));
}

}  // namespace octet::train
