#include "octet/train/run/trainer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <new>
#include <numeric>

#include "octet/base/file.hpp"
#include "octet/base/log.hpp"
#include "octet/base/new_file.hpp"
#include "octet/base/path.hpp"
#include "octet/config/write.hpp"
#include "octet/machine/limits.hpp"
#include "octet/machine/machine.hpp"
#include "octet/tensor/cpu/threads.hpp"
#include "octet/train/checkpoint/restore.hpp"
#include "octet/train/step/evaluate.hpp"
#include "octet/train/run/first_gradient.hpp"
#include "octet/train/run/gemm_plans_file.hpp"
#include "octet/train/step/nonfinite.hpp"
#include "octet/train/run/resume.hpp"
#include "octet/train/run/run_folder.hpp"
#include "octet/train/step/step.hpp"
#include "octet/train/step/weights.hpp"

namespace octet::train {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double median(std::vector<double> values) {
  if (values.empty()) return NAN;
  const auto middle = values.begin() + std::ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

Progress::Progress() : eval_loss(NAN) {}

void Progress::visit_state(StateVisitor& v) {
  v.state("step", step), v.state("skipped", skipped), v.state("skipped_in_a_row", skipped_in_a_row),
      v.state("last_eval_step", last_eval_step);
  v.state("eval_loss", eval_loss), v.state("train_seconds", train_seconds), v.state("elapsed", elapsed);
  v.state("losses", losses), v.state("rates", rates);
}

Corpus::Corpus(const data::DataConfig& c, const LoopConfig& loop, std::int64_t vocabulary)
    : dataset_(c.path, c.verify ? data::Verify::everything : data::Verify::header),
      training_(dataset_, data::split_documents(dataset_, c.eval_fraction).train, c.sequence_length, "training"),
      eval_tokens_(loop.eval_tokens) {
  data::require_vocabulary(dataset_, vocabulary);
  if (c.eval_fraction > 0)
    held_out_.emplace(dataset_, data::split_documents(dataset_, c.eval_fraction).held_out, c.sequence_length, "held-out");
}

std::optional<data::EvalBatches> Corpus::held_out(std::int64_t rows) const {
  if (!held_out_) return std::nullopt;
  return data::EvalBatches(*held_out_, rows, eval_tokens_);
}

Trainer::Trainer(const RunConfig& config, const Corpus& corpus, const TrainOptions& options)
    : config_(config),
      corpus_(corpus),
      options_(options),
      held_out_(corpus.held_out(config.train.batch)),
      steps_(config.steps()),
      console_(options.console),
      average_loss_(NAN) {
  if (config.threads > 0) cpu::set_threads(int(config.threads));
  const CheckpointStore store(checkpoint_folder(options.resume));
  std::optional<Manifest> manifest;
  if (!options.resume.empty()) {
    lock_.emplace(options.resume);
    std::vector<std::string> damaged;
    manifest = newest_good(store, &damaged);
    for (const auto& sentence : damaged) told_.emplace_back("checkpoint", sentence);
    if (manifest) require_same_run(config_, to_text(corpus.dataset().fingerprint()), *manifest, store.path(manifest->step));
  }
  const EngineConfig engine = engine_config(config_);
  const Device device = device_named(config.device);
  dry_ = dry_run(engine, machine_target(device, config.deterministic), config.train.batch, config.train.accumulate);
  require_native(dry_, config.recipe);
  require_memory(dry_, available_bytes(device), config.train);
  machine_limits(device);  // measured while there is memory for it
  engine_ = std::make_unique<Engine>(engine, device, machine_target(device, config.deterministic));
  if (dry_.step.emulated_flops > 0)
    log::warn("this GPU does not multiply {}'s codes as they are: they are decoded first, as the plan says", config.recipe.recipe);
  facts_ = facts_of(config_, engine.shape, dry_);
  facts_.arm = options.arm, facts_.twin = int(options.twin), facts_.baseline = options.baseline;
  if (!options.baseline_folder.empty()) facts_.gradient_cosine = NAN;  // until the first step
  open_folder();
  metrics_ = std::make_unique<MetricsWriter>(folder_ + "/metrics.jsonl");
  loader_ = std::make_unique<data::Loader>(
      corpus.training(), data::Loader::Options{.rows = config.train.batch,
                                               .seed = std::uint64_t(config.seed),
                                               .prefetch = std::max<std::int64_t>(config.data.prefetch, config.train.accumulate)});
  saver_ = std::make_unique<CheckpointSaver>(CheckpointStore(checkpoint_folder(folder_)), config_.checkpoint.keep, *metrics_);
  if (manifest) {
    restore(*manifest);
    return;
  }
  if (!options.resume.empty()) log::info("{} has no checkpoint yet: begins again", folder_);
  metrics_->cut_back(0);
  fresh_ = true;
  engine_->parameters.initialize(engine_->stream, std::uint64_t(config.seed));
  if (!config.model.init.empty()) load_weights(*engine_, config.model.init);
  if (facts_.twin > 0) engine_->parameters.nudge(engine_->stream, std::uint64_t(config.seed), facts_.twin);
}

void Trainer::open_folder() {
  if (options_.resume.empty()) {
    folder_ = make_run_folder(config_.output, facts_.name);
    lock_.emplace(folder_);
  } else {
    folder_ = options_.resume;
    CheckpointStore(checkpoint_folder(folder_)).collect_garbage();
    remove_abandoned(folder_);
    if (exists(folder_ + "/run.json")) {
      const RunFacts before = read_run_facts(folder_ + "/run.json");
      if (const std::string difference = difference_of(before.machine, facts_.machine); !difference.empty()) {
        log::warn("{}", difference);
        told_.emplace_back("machine", difference);
      }
      facts_.name = before.name, facts_.arm = before.arm, facts_.twin = before.twin, facts_.started = before.started;
      facts_.baseline = before.baseline, facts_.gradient_cosine = before.gradient_cosine;
    }
  }
  write_file(folder_ + "/config.toml", config::to_toml(config_));
  write_run_facts(folder_ + "/run.json", facts_);
}

void Trainer::restore(const Manifest& manifest) {
  const std::string from = CheckpointStore(checkpoint_folder(folder_)).path(manifest.step);
  const auto file = io::SafetensorsFile::open(from + "/" + CheckpointStore::state_file, io::Link::refuse);
  for (const auto mode : {Restore::Mode::check, Restore::Mode::write}) {
    Restore visitor(engine_->stream, file, mode);
    visit_state(visitor);
    visitor.finish();
  }
  replay_gemm_plans(folder_, engine_->stream.device());
  saved_step_ = at_.step;
  log::info("goes on after step {}, from {}", at_.step, from);
}

void Trainer::visit_state(StateVisitor& v) {
  v.section("engine", *engine_);
  v.section("data", *loader_);
  v.section("metrics", *metrics_);
  v.section("loss_window", losses_);
  v.section("grad_norm_window", norms_);
  v.section("run", at_);
}

double Trainer::seconds() const { return now() - started_; }

double Trainer::progress(std::int64_t step) const {
  if (steps_ > 0) return double(step) / double(steps_);
  return at_.train_seconds / config_.train.max_seconds;
}

bool Trainer::done() const {
  if (stop_requested()) return true;
  if (steps_ > 0 && at_.step >= steps_) return true;
  return config_.train.max_seconds > 0 && seconds() >= config_.train.max_seconds;
}

bool Trainer::eval_due() const {
  const std::int64_t every = config_.train.eval_every;
  return every > 0 && at_.step > 0 && at_.step % every == 0;
}

Outcome Trainer::run() {
  started_ = now() - at_.elapsed;
  last_save_ = now();
  if (config_.telemetry.tensorboard) show_on_board();
  for (const auto& [kind, text] : told_)
    metrics_->emit(IncidentEvent{.step = at_.step, .time = seconds(), .kind = kind, .path = "", .text = text});
  prepare(*engine_);
  const bool begun = !fresh_ || calibrate_scales();
  RunState state = RunState::finished;
  for (;;) {
    if (eval_due()) evaluate_now();
    if (at_.skipped_in_a_row >= config_.train.max_skipped || !not_finite_.empty()) state = RunState::diverged;
    if (done() || state == RunState::diverged) break;
    save_if_due();
    one_step();
    watch_folder();
  }
  if (state == RunState::finished && !stop_requested()) evaluate_now(), evaluate_average();
  if (state == RunState::finished && !result_is_finite()) state = RunState::diverged;
  if (stop_requested() && state == RunState::finished) state = RunState::stopped;
  console_.finish();
  require_folder();
  if (state != RunState::diverged && begun) save_last(state);
  if (options_.save_weights && config_.train.save_weights && state != RunState::diverged)
    train::save_weights(*engine_, folder_ + "/weights");
  const EndEvent end = end_event(state);
  metrics_->emit(end);
  facts_.state = state;
  write_run_facts(folder_ + "/run.json", facts_);
  Outcome out{folder_, state, end, engine_->stream.arena().peak()};
  require_folder();
  if (!not_finite_.empty())
    throw DivergedError(
        format("run {}: {} not finite after step {}, and the weights are not saved: see the incidents in {}/metrics.jsonl, and try a lower "
               "optim.learning_rate",
               facts_.name, not_finite_, at_.step, folder_));
  if (state == RunState::diverged)
    throw DivergedError(
        format("run {}: {} steps in a row were skipped because something was not finite, the last one step {}; see the incidents in "
               "{}/metrics.jsonl, "
               "and try a lower optim.learning_rate or recipe.name = \"bf16\"",
               facts_.name, at_.skipped_in_a_row, at_.step, folder_));
  return out;
}

bool Trainer::calibrate_scales() {
  if (engine_->precision.calibration_passes() == 0) return true;
  const std::uint64_t sample = loader_->position();
  const bool whole = calibrate(
      *engine_, config_.train.accumulate, [this] { return loader_->next(); }, stop_requested);
  loader_->seek(sample);
  return whole;
}

void Trainer::show_on_board() {
  board_.emplace(folder_, facts_.quantizers, at_.step + 1, at_.skipped);
  metrics_->mirror([this](const Event& event) { board_->add(event); });
}

void Trainer::save_if_due() {
  report_save();
  if (saved_step_ == at_.step) return;
  const CheckpointConfig& c = config_.checkpoint;
  if (c.every > 0 && at_.step > 0 && at_.step % c.every == 0) save_due_ = true;
  if (c.minutes > 0 && now() - last_save_ >= 60 * c.minutes) save_due_ = true;
  if (take_save_request()) save_due_ = true;
  if (save_due_ && !saver_->busy() && weights_are_finite()) begin_save();
}

void Trainer::save_last(RunState state) {
  saver_->wait();
  report_save();
  if (saved_step_ == at_.step || (state == RunState::finished && !options_.save_finished)) return;
  begin_save();
  saver_->wait();
  report_save();
}

void Trainer::begin_save() {
  at_.elapsed = seconds();
  save_due_ = false, last_save_ = now();
  Snapshot snapshot;
  try {
    Capture capture(engine_->stream);
    visit_state(capture);
    snapshot = capture.take();
    keep_gemm_plans(folder_, engine_->stream.device());  // now with the forms of evaluation
  } catch (const IoError& e) {
    return not_saved(at_.step, e.what());
  } catch (const std::bad_alloc&) {
    return not_saved(at_.step, "there is no memory for a copy of its state");
  }
  snapshot.step = at_.step, snapshot.config = config::to_toml(config_), snapshot.text = to_text(corpus_.dataset().fingerprint());
  saver_->save(std::move(snapshot));
  saved_step_ = at_.step;
}

void Trainer::report_save() {
  const auto result = saver_->result();
  if (!result || result->error.empty()) return;
  saved_step_ = -1;
  not_saved(result->step, result->error);
}

void Trainer::not_saved(std::int64_t step, const std::string& why) {
  const std::string text = format("the checkpoint of step {} was not saved, training goes on: {}", step, why);
  tell("checkpoint", text);
}

void Trainer::tell(const std::string& kind, const std::string& text) {
  log::warn("{}", text);
  metrics_->emit(IncidentEvent{.step = at_.step, .time = seconds(), .kind = kind, .path = "", .text = text});
}

void Trainer::watch_folder() {
  const bool lost = !lock_->in_place();
  if (lost == folder_lost_) return;
  folder_lost_ = lost;
  tell("folder",
       lost ? format("after step {} the run's folder {} is no longer there: nothing can be saved until it is put back", at_.step, folder_)
            : format("after step {} the run's folder {} is there again", at_.step, folder_));
}

// The end of a run whose folder was moved or removed must not look like that of one whose files are there.
void Trainer::require_folder() const {
  if (lock_->in_place()) return;
  throw IoError(
      format("the run's folder {} was moved or removed while it trained, so its end after step {} was not saved; put it back, and go on "
             "from its last "
             "checkpoint with octet train --resume {}",
             printable(folder_), at_.step, printable(folder_)));
}

bool Trainer::weights_are_finite() {
  const std::string parameter = nonfinite_parameter(*engine_);
  if (!parameter.empty()) not_finite_ = format("the weights of {} are", parameter);
  return tell_not_finite();
}

bool Trainer::result_is_finite() {
  if (!weights_are_finite()) return false;
  if (at_.last_eval_step == at_.step && !std::isfinite(at_.eval_loss)) not_finite_ = "the loss on held-out text is";
  return tell_not_finite();
}

bool Trainer::tell_not_finite() {
  if (not_finite_.empty()) return true;
  tell("nonfinite", format("after step {} {} not finite", at_.step, not_finite_));
  return false;
}

std::vector<data::Batch> Trainer::next_micro_batches() {
  std::vector<data::Batch> batches;
  for (std::int64_t i = 0; i < config_.train.accumulate; ++i) batches.push_back(loader_->next());
  return batches;
}

void Trainer::one_step() {
  const double begin = now(), waited = loader_->wait_seconds();
  const std::uint64_t sample = loader_->position();
  const std::vector<data::Batch> micro_batches = next_micro_batches();
  const std::int64_t step = at_.step + 1;
  const bool measure = step % config_.train.health_every == 0 || step == 1;
  const Work before = engine_->stream.work();
  const double rate = config_.optim.learning_rate * optim::rate_factor(config_.optim.schedule, progress(step));
  if (!run_step(*engine_, micro_batches, {.learning_rate = rate, .measure = measure, .stopped = stop_requested}))
    return loader_->seek(sample);
  at_.step = step;

  const Readout shown = read_out(*engine_);
  const bool skip = shown.step.skip != 0;
  if (step == 1) keep_gradient();
  emit_scales(shown);
  if (measure) emit_health(shown);
  StepEvent e{.step = step,
              .loss = double(shown.loss),
              .grad_norm = shown.step.gradient_norm,
              .learning_rate = shown.step.learning_rate,
              .skipped = skip};
  e.param_norm = std::sqrt(shown.parameter_squares);
  if (skip) skipped(micro_batches);
  else at_.skipped_in_a_row = 0;
  if (measure && !std::isfinite(shown.parameter_squares)) weights_are_finite();
  if (averages(step)) engine_->average->add(engine_->stream);
  else if (engine_->average) engine_->average->forget();
  finish_step(*engine_);
  if (step == 1) keep_gemm_plans(folder_, engine_->stream.device());

  e.seconds = now() - begin;
  at_.train_seconds += e.seconds;
  e.time = seconds();
  e.tokens = step * config_.tokens_per_step();
  e.tokens_per_second = double(config_.tokens_per_step()) / e.seconds;
  e.limit_share = least_seconds(engine_->stream.work() - before, machine_limits(engine_->stream.device())) / e.seconds;
  e.data_wait = loader_->wait_seconds() - waited;
  e.memory_bytes = std::int64_t(engine_->stream.arena().peak().total);
  emit_step(e);
}

void Trainer::emit_step(const StepEvent& raw) {
  StepEvent e = raw;
  e.loss_z = losses_.z_score(e.loss), e.grad_norm_z = norms_.z_score(e.grad_norm);
  if (!e.skipped) {
    losses_.add(e.loss), norms_.add(e.grad_norm);
    at_.losses.push_back(e.loss);
  }
  if (at_.step > 1) at_.rates.push_back(e.tokens_per_second);  // the first step also touches its memory for the first time
  metrics_->emit(e);
  const double rate = at_.train_seconds / std::max(progress(at_.step), 1e-9);
  const double left = std::max(0.0, rate * (1 - progress(at_.step)));
  console_.step(e, {.steps = steps_, .eta_seconds = at_.step > 1 ? left : -1, .fraction_done = std::min(1.0, progress(at_.step))});
}

void Trainer::keep_gradient() {
  if (!options_.keep_first_gradient && options_.baseline_folder.empty()) return;
  const std::vector<float> flat = nn::flat_values(engine_->stream, engine_->parameters.gradients());
  if (options_.keep_first_gradient) write_first_gradient(folder_, flat);
  if (options_.baseline_folder.empty()) return;
  facts_.gradient_cosine = cosine_with_first_gradient(options_.baseline_folder, flat);
  write_run_facts(folder_ + "/run.json", facts_);
}

void Trainer::emit_scales(const Readout& shown) {
  if (shown.health.empty()) return;
  ScalesEvent e{.step = at_.step, .time = seconds(), .amax = shown.amax};
  for (const ops::QuantizeHealth& h : shown.health) e.scale_min.push_back(h.scale_min), e.scale_max.push_back(h.scale_max);
  metrics_->emit(e);
}

void Trainer::emit_health(const Readout& shown) {
  if (shown.health.empty()) return;
  HealthEvent e{.step = at_.step, .time = seconds()};
  for (std::size_t i = 0; i < shown.health.size(); ++i) {
    const ops::QuantizeHealth& h = shown.health[i];
    const double values = double(std::max<std::int64_t>(h.values, 1)), amax = shown.amax[i];
    // The block with the largest value has the smallest scale.
    e.headroom_bits.push_back(float(std::log2(double(format_max(engine_->precision.slots().slots()[i].format)) / (amax * h.scale_min))));
    e.saturated.push_back(float(double(h.saturated) / values));
    e.flushed.push_back(float(double(h.flushed) / values));
    e.sqnr_db.push_back(float(10 * std::log10(h.signal / h.noise)));
    e.nonfinite.push_back(h.nonfinite);
  }
  metrics_->emit(e);
}

void Trainer::skipped(std::span<const data::Batch> micro_batches) {
  ++at_.skipped, ++at_.skipped_in_a_row;
  const std::string path = first_nonfinite(*engine_, micro_batches);
  const std::string text =
      format("step {} skipped: {} is not finite; weights unchanged", at_.step, path.empty() ? "the gradient norm" : path);
  metrics_->emit(IncidentEvent{.step = at_.step, .time = seconds(), .kind = "skipped", .path = path, .text = text});
  console_.note(text);
}

void Trainer::evaluate_now() {
  if (!held_out_ || at_.last_eval_step == at_.step) return;
  const Evaluation e = evaluate(*engine_, *held_out_, stop_requested);
  if (!e.whole) return;
  at_.last_eval_step = at_.step;
  at_.eval_loss = e.loss;
  metrics_->emit(EvalEvent{.step = at_.step, .time = seconds(), .loss = e.loss, .tokens = e.tokens});
  console_.note(format("step {}  eval loss {} over {} held-out tokens", at_.step, fixed(e.loss, 4), grouped(e.tokens)));
}

bool Trainer::averages(std::int64_t step) const { return engine_->average && progress(step) > 1 - config_.train.average; }

void Trainer::evaluate_average() {
  if (!held_out_ || !engine_->average || engine_->average->count() == 0) return;
  const AveragedWeights averaged(engine_->stream, engine_->parameters, *engine_->average);
  const Evaluation e = evaluate(*engine_, *held_out_, stop_requested);
  if (!e.whole) return;
  average_loss_ = e.loss;
  metrics_->emit(EvalEvent{.step = at_.step, .time = seconds(), .loss = at_.eval_loss, .tokens = e.tokens, .average_loss = e.loss});
  console_.note(
      format("step {}  eval loss {} of the weights averaged over {} steps", at_.step, fixed(e.loss, 4), engine_->average->count()));
}

EndEvent Trainer::end_event(RunState state) {
  const std::size_t last = std::max<std::size_t>(1, at_.losses.size() / 20);
  const double sum = at_.losses.empty() ? NAN : std::accumulate(at_.losses.end() - std::ptrdiff_t(last), at_.losses.end(), 0.0);
  const char* reason = state == RunState::stopped         ? "stopped by a signal"
                       : !not_finite_.empty()             ? "not finite"
                       : state == RunState::diverged      ? "too many skipped steps in a row"
                       : steps_ > 0 && at_.step >= steps_ ? "all steps done"
                                                          : "time is up";
  return {.step = at_.step,
          .time = seconds(),
          .reason = reason,
          .train_loss = sum / double(last),
          .eval_loss = at_.eval_loss,
          .tokens_per_second = median(at_.rates),
          .skipped = at_.skipped,
          .average_loss = average_loss_};
}

}  // namespace octet::train
