#include "octet/train/run/recovery/recovery.hpp"

#include <algorithm>

#include "octet/base/log.hpp"
#include "octet/parallel/host_values.hpp"
#include "octet/train/run/checkpoints/resume.hpp"

namespace octet::train {

using Mode = health::RecoveryConfig::Mode;

Recovery::Recovery(const RunConfig& config, RunRanks& ranks, StateOfRun& run, RunCheckpoints& checkpoints, PrecisionChange& precision,
                   RunEnd& end)
    : config_(config), ranks_(ranks), run_(run), checkpoints_(checkpoints), precision_(precision), end_(end) {}

void Recovery::begin() {
  const health::RecoveryConfig& c = config_.recovery;
  if (c.mode == Mode::act && c.layers.most > 0) warn_of_layers();
  if (precision_.now().layers.empty() || c.mode == Mode::act) return;
  const health::Answer back = change_layers({});
  if (!back.done)
    throw DeviceError(format("recovery.mode = \"act\" must stay: layers cannot return to their own precision: {}", back.text));
  run_.recorder.forget_layers(run_.at.step, back.text);
}

// Stages of a pipeline have different layers.
void Recovery::warn_of_layers() {
  const std::string own = never_possible(config_, run_.engine);
  const std::vector<std::string> all = parallel::gathered(run_.engine.engine().stream, ranks_.all(), own);
  const auto found = std::ranges::find_if(all, [](const std::string& obstacle) { return !obstacle.empty(); });
  if (found != all.end()) log::warn("recovery.layers: layers cannot change their precision in this run: {}", *found);
}

void Recovery::decide() {
  if (config_.recovery.mode != Mode::act) return;
  for (;;) {
    const Decision d = decision_of_first(run_.engine.engine().stream, ranks_.all(), run_.recorder.decision());
    orders_ = d.orders;
    if (d.request.action == health::RecoveryAction::none) return;
    run_.recorder.answer(perform(d.request));
  }
}

health::Answer Recovery::perform(const health::Request& request) {
  switch (request.action) {
    case health::RecoveryAction::layers: return change_layers(request.layers);
    case health::RecoveryAction::roll_back: return roll_back(request.before);
    default: end_.recovery_stopped = request.reason; return {.done = true};
  }
}

health::Answer Recovery::roll_back(std::int64_t before) {
  const RunCheckpoints::Found found = checkpoints_.newest_before(before);
  if (found.step < 0) return {.text = found.why};
  const PrecisionNow then = precision_of(checkpoints_.manifest(found.step), checkpoints_.path(found.step));
  precision_.replace(then);
  const double train_seconds = run_.at.train_seconds;
  checkpoints_.return_to(found.step, [this](StateVisitor& v) { run_.visit_rolled_back(v); });
  run_.at.train_seconds = train_seconds, end_.not_finite.clear();
  run_.engine.engine().parameters.mark_changed();
  run_.engine.begin_steps();
  return {.done = true,
          .text = format("the run went back to the checkpoint of step {}", found.step),
          .back_to = found.step,
          .layers = then.layers};
}

health::Answer Recovery::change_layers(const std::vector<std::string>& layers) {
  const std::vector<scaling::PlanRow> before = run_.engine.engine().precision.rows();
  std::vector<std::string> named = precision_.now().layers;
  named.insert(named.end(), layers.begin() + std::ptrdiff_t(layers.empty() ? 0 : named.size()), layers.end());
  if (const std::string obstacle = precision_.take_over({precision_.now().recipe, layers}); !obstacle.empty()) return {.text = obstacle};
  return {.done = true, .text = plan_changes(named, before, run_.engine.engine().precision.rows())};
}

}  // namespace octet::train
