#include <algorithm>

#include "octet/base/log.hpp"
#include "octet/parallel/host_values.hpp"
#include "octet/train/run/layer_change.hpp"
#include "octet/train/run/resume.hpp"
#include "octet/train/run/trainer.hpp"

// The actions of recovery in a run.

namespace octet::train {

// A run that was resumed in another mode returns its layers.
void Trainer::begin_recovery() {
  using Mode = health::RecoveryConfig::Mode;
  const health::RecoveryConfig& c = config_.recovery;
  if (c.mode == Mode::act && c.layers.most > 0) warn_of_layers();
  if (layers_.empty() || c.mode == Mode::act) return;
  const health::Answer back = change_layers({});
  if (!back.done)
    throw DeviceError(format("recovery.mode = \"act\" must stay: layers cannot return to their own precision: {}", back.text));
  recorder_->forget_layers(at_.step, back.text);
}

// Stages of a pipeline have different layers.
void Trainer::warn_of_layers() {
  const std::string own = never_possible(config_, *run_engine_);
  const std::vector<std::string> all = parallel::gathered(engine().stream, ranks_.all(), own);
  const auto found = std::ranges::find_if(all, [](const std::string& obstacle) { return !obstacle.empty(); });
  if (found != all.end() && ranks_.leads()) log::warn("recovery.layers: layers cannot change their precision in this run: {}", *found);
}

// After each step, by rank 0, until nothing more is asked of this run.
void Trainer::decide() {
  if (config_.recovery.mode != health::RecoveryConfig::Mode::act) return;
  for (;;) {
    const Decision d = decision_of_first(engine().stream, ranks_.all(), recorder_->decision());
    orders_ = d.orders;
    if (d.request.rung == health::Rung::none) return;
    recorder_->answer(perform(d.request));
  }
}

health::Answer Trainer::perform(const health::Request& request) {
  switch (request.rung) {
    case health::Rung::layers: return change_layers(request.layers);
    case health::Rung::roll_back: return roll_back(request.before);
    default: end_.recovery_stopped = request.reason; return {.done = true};
  }
}

health::Answer Trainer::roll_back(std::int64_t before) {
  const RunCheckpoints::Found found = checkpoints_->newest_before(before);
  if (found.step < 0) return {.text = found.why};
  const CheckpointStore store(checkpoint_folder(run_.folder));
  const std::vector<std::string> layers = safer_layers_of(store.path(found.step), store.manifest(found.step));
  const std::string recipe = recipe_of_step(config_, found.step);
  if (layers != layers_ || recipe != recipe_) change_->replace(with_safer_layers(config_, recipe, layers));
  layers_ = layers, recipe_ = recipe;
  const double train_seconds = at_.train_seconds;
  checkpoints_->return_to(found.step, [this](StateVisitor& v) { visit_rolled_back(v); });
  at_.train_seconds = train_seconds, end_.not_finite.clear();
  engine().parameters.mark_changed();
  run_engine_->begin_steps();
  return {
      .done = true, .text = format("the run went back to the checkpoint of step {}", found.step), .back_to = found.step, .layers = layers};
}

// The record is never cut, and decisions about it continue.
void Trainer::visit_rolled_back(StateVisitor& v) {
  v.section("engine", engine());
  v.section("data", *loader_);
  Recorder::keep_state(v);
  v.section("run", at_);
}

// After a checkpoint of the last step in another recipe.
void Trainer::use_recipe(const std::string& recipe) {
  if (recipe == recipe_) return;
  change_->take_over(with_safer_layers(config_, recipe, layers_), at_.step);
  recipe_ = recipe;
  recorder_->incident(at_.step, "precision",
                      format("linear layers run in {} from step {} on, as recipe.final says", recipe_, at_.step + 1));
}

health::Answer Trainer::change_layers(const std::vector<std::string>& layers) {
  const std::vector<scaling::PlanRow> before = engine().precision.rows();
  if (const std::string obstacle = change_->take_over(with_safer_layers(config_, recipe_, layers)); !obstacle.empty())
    return {.text = obstacle};
  std::vector<std::string> named = layers_;
  named.insert(named.end(), layers.begin() + std::ptrdiff_t(layers.empty() ? 0 : layers_.size()), layers.end());
  layers_ = layers;
  return {.done = true, .text = plan_changes(named, before, engine().precision.rows())};
}

}  // namespace octet::train
