#include <algorithm>
#include <new>

#include "octet/base/log.hpp"
#include "octet/machine/machine.hpp"
#include "octet/parallel/host_values.hpp"
#include "octet/train/checkpoint/state_copy.hpp"
#include "octet/train/run/layer_change.hpp"
#include "octet/train/run/planned_work.hpp"
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
  const std::string own = never_possible(config_, *engine_, planned_rank());
  const std::vector<std::string> all = parallel::gathered(engine_->stream, ranks_.all(), own);
  const auto found = std::ranges::find_if(all, [](const std::string& obstacle) { return !obstacle.empty(); });
  if (found != all.end() && ranks_.leads()) log::warn("recovery.layers: layers cannot change their precision in this run: {}", *found);
}

// After each step, by rank 0, until nothing more is asked of this run.
void Trainer::decide() {
  if (config_.recovery.mode != health::RecoveryConfig::Mode::act) return;
  for (;;) {
    const Decision d = decision_of_first(engine_->stream, ranks_.all(), recorder_->decision());
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
  if (layers != layers_) {
    const EngineConfig config = with_safer_layers(config_, layers);
    const DryRun dry = dry_run(config, engine_->stream.target(), config_.train.batch, config_.train.accumulate, planned_rank());
    replace_engine(config, dry, layers);
  }
  const double train_seconds = at_.train_seconds;
  checkpoints_->return_to(found.step, [this](StateVisitor& v) { visit_rolled_back(v); });
  at_.train_seconds = train_seconds, end_.not_finite.clear();
  engine_->parameters.mark_changed();
  runner_.emplace(*engine_);
  return {
      .done = true, .text = format("the run went back to the checkpoint of step {}", found.step), .back_to = found.step, .layers = layers};
}

// The record is never cut, and decisions about it continue.
void Trainer::visit_rolled_back(StateVisitor& v) {
  v.section("engine", *engine_);
  v.section("data", *loader_);
  Recorder::keep_state(v);
  v.section("run", at_);
}

// Another engine gets the state in memory. Nothing changes if a rank cannot.
health::Answer Trainer::change_layers(const std::vector<std::string>& layers) {
  const EngineConfig config = with_safer_layers(config_, layers);
  const Device device = engine_->stream.device();
  std::optional<StateCopy> values;
  std::vector<scaling::QuantizerState> quantizers;
  LayerChange change;
  try {
    values = StateCopy::of(engine_->stream, [&](StateVisitor& v) { engine_->visit_values(v); });
    quantizers = engine_->precision.quantizer_states(engine_->stream);
    change = layer_change(config, config_, *engine_, planned_rank(),
                          machine::available_bytes(device) / std::size_t(device == Device::cpu ? options_.ranks_here : 1));
  } catch (const std::bad_alloc&) {
    change.obstacle = "there is no memory for a copy of the run's state";
  }
  for (const std::string& obstacle : parallel::gathered(engine_->stream, ranks_.all(), change.obstacle))
    if (!obstacle.empty()) return {.text = obstacle};
  const std::vector<scaling::PlanRow> before = engine_->precision.rows();
  std::vector<std::string> named = layers_;
  named.insert(named.end(), layers.begin() + std::ptrdiff_t(layers.empty() ? 0 : layers_.size()), layers.end());
  replace_engine(config, change.dry, layers);
  values->restore(engine_->stream, [&](StateVisitor& v) { engine_->visit_values(v); });
  begin_quantizers(engine_->precision.set_quantizer_states(engine_->stream, quantizers));
  return {.done = true, .text = plan_changes(named, before, engine_->precision.rows())};
}

void Trainer::replace_engine(const EngineConfig& config, const DryRun& dry, const std::vector<std::string>& layers) {
  const Device device = engine_->stream.device();
  const Target target = engine_->stream.target();
  checkpoints_->wait_copied();
  runner_.reset();
  engine_.reset();
  engine_ = std::make_unique<Engine>(config, device, target, &ranks_.all());
  checkpoints_->use(engine_->stream);
  recorder_->use(engine_->precision.slots().slots());
  planned_ = promised_part(dry.step), layers_ = layers;
}

// Scales of quantizers without a past come from passes over the next data, as in the first step of a run.
void Trainer::begin_quantizers(int without_past) {
  runner_.emplace(*engine_);
  if (without_past == 0 || engine_->precision.calibration_passes() == 0) return;
  clear(engine_->stream, engine_->optimizer->skip());
  const std::uint64_t sample = loader_->position();
  runner_->calibrate(config_.train.accumulate, [this] { return loader_->next(); });
  loader_->seek(sample);
}

}  // namespace octet::train
