#include "octet/train/trainer.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <numeric>

#include "octet/base/file.hpp"
#include "octet/base/log.hpp"
#include "octet/config/write.hpp"
#include "octet/tensor/cpu/threads.hpp"
#include "octet/train/evaluate.hpp"
#include "octet/ops/machine/machine.hpp"
#include "octet/train/nonfinite.hpp"
#include "octet/train/run_folder.hpp"
#include "octet/train/step.hpp"
#include "octet/train/weights.hpp"

namespace octet::train {
namespace {

std::atomic<bool> stop_requested{false};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) ab += double(a[i]) * b[i], aa += double(a[i]) * a[i], bb += double(b[i]) * b[i];
  return ab / std::sqrt(aa * bb);
}

double median(std::vector<double> values) {
  if (values.empty()) return NAN;
  const auto middle = values.begin() + std::ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

void request_stop() { stop_requested = true; }

Corpus::Corpus(const data::DataConfig& c, const LoopConfig& loop, std::int64_t vocabulary)
    : dataset_(c.path, c.verify ? data::Verify::everything : data::Verify::header),
      training_(dataset_, data::split_documents(dataset_, c.eval_fraction).train, c.sequence_length, "training") {
  data::require_vocabulary(dataset_, vocabulary);
  if (c.eval_fraction > 0)
    held_out_ = std::make_unique<data::EvalBatches>(
        data::Windows(dataset_, data::split_documents(dataset_, c.eval_fraction).held_out, c.sequence_length, "held-out"), loop.batch, loop.eval_batches);
}

Trainer::Trainer(const RunConfig& config, const Corpus& corpus, const TrainOptions& options)
    : config_(config), corpus_(corpus), options_(options), steps_(config.steps()), console_(options.console), eval_loss_(NAN) {
  if (config.threads > 0) cpu::set_threads(int(config.threads));
  const EngineConfig engine = engine_config(config_);
  const Device device = device_named(config.device);
  dry_ = dry_run(engine, machine_target(device, config.deterministic), config.train.batch, config.train.accumulate);
  require_memory(dry_, available_bytes(device), config.train);
  engine_ = std::make_unique<Engine>(engine, device, machine_target(device, config.deterministic));
  for (const auto& pattern : engine_->precision.unused_patterns()) log::warn("recipe.keep_bf16: no layer matches \"{}\"", pattern);
  facts_ = facts_of(config_, engine.shape, dry_);
  facts_.baseline = options.baseline;
  folder_ = make_run_folder(config.output, facts_.name);
  write_file_atomically(folder_ + "/config.toml", config::to_toml(config_));
  write_run_facts(folder_ + "/run.json", facts_);
  metrics_ = std::make_unique<MetricsWriter>(folder_ + "/metrics.jsonl");
  loader_ = std::make_unique<data::Loader>(corpus.training(), data::Loader::Options{.rows = config.train.batch, .seed = std::uint64_t(config.seed),
                                                                                  .prefetch = std::max<std::int64_t>(config.data.prefetch, config.train.accumulate)});
  engine_->parameters.initialize(engine_->stream, std::uint64_t(config.seed));
  if (!config.model.init.empty()) load_weights(*engine_, config.model.init);
}

double Trainer::seconds() const { return now() - started_; }

double Trainer::progress() const {
  if (steps_ > 0) return double(step_) / double(steps_);
  return train_seconds_ / config_.train.max_seconds;
}

bool Trainer::done() const {
  if (stop_requested) return true;
  if (steps_ > 0 && step_ >= steps_) return true;
  return config_.train.max_seconds > 0 && seconds() >= config_.train.max_seconds;
}

Outcome Trainer::run() {
  started_ = now();
  prepare(*engine_);
  RunState state = RunState::finished;
  while (!done() && state == RunState::finished) {
    one_step();
    const std::int64_t every = config_.train.eval_every;
    if (every > 0 && step_ % every == 0) evaluate_now();
    if (skipped_in_a_row_ >= config_.train.max_skipped) state = RunState::diverged;
  }
  if (stop_requested) state = RunState::stopped;
  if (state == RunState::finished) evaluate_now();
  console_.finish();
  if (options_.save_weights && config_.train.save_weights && state != RunState::diverged) train::save_weights(*engine_, folder_ + "/weights");
  const EndEvent end = end_event(state);
  metrics_->emit(end);
  facts_.state = state;
  write_run_facts(folder_ + "/run.json", facts_);
  Outcome out{folder_, state, end, engine_->stream.arena().peak(), std::move(first_gradient_)};
  if (state == RunState::diverged)
    throw DivergedError(format("run {}: {} steps in a row were skipped because something was not finite, the last one step {}; see the incidents in {}/metrics.jsonl, "
                               "and try a lower optim.learning_rate or recipe.name = \"bf16\"",
                               facts_.name, skipped_in_a_row_, step_, folder_));
  return out;
}

void Trainer::one_step() {
  const double begin = now(), waited = loader_->wait_seconds();
  std::vector<data::Batch> micro_batches;
  for (std::int64_t i = 0; i < config_.train.accumulate; ++i) micro_batches.push_back(loader_->next());
  ++step_;
  const bool measure = step_ % config_.train.health_every == 0 || step_ == 1;
  const Work before = engine_->stream.work();
  run_step(*engine_, micro_batches, {.learning_rate = config_.optim.learning_rate * optim::rate_factor(config_.optim.schedule, progress()), .measure = measure});

  const Readout shown = read_out(*engine_);
  const bool skip = shown.step.skip != 0;
  if (step_ == 1) keep_gradient();
  emit_scales(shown);
  if (measure) emit_health(shown);
  StepEvent e{.step = step_, .loss = double(shown.loss), .grad_norm = shown.step.gradient_norm, .learning_rate = shown.step.learning_rate, .skipped = skip};
  e.param_norm = std::sqrt(shown.parameter_squares);
  if (skip) skipped(micro_batches);
  else skipped_in_a_row_ = 0;
  finish_step(*engine_);
  if (step_ == 1) keep_gemm_plans();

  e.seconds = now() - begin;
  train_seconds_ += e.seconds;
  e.time = seconds();
  e.tokens = step_ * config_.tokens_per_step();
  e.tokens_per_second = double(config_.tokens_per_step()) / e.seconds;
  e.gemm_share = (engine_->stream.work().gemm_flops - before.gemm_flops) / e.seconds / matmul_limit(engine_->stream.device()).flops_per_second;
  e.data_wait = loader_->wait_seconds() - waited;
  e.memory_bytes = std::int64_t(engine_->stream.arena().peak().total);
  emit_step(e);
}

void Trainer::emit_step(const StepEvent& raw) {
  StepEvent e = raw;
  e.loss_z = losses_.z_score(e.loss), e.grad_norm_z = norms_.z_score(e.grad_norm);
  if (!e.skipped) {
    losses_.add(e.loss), norms_.add(e.grad_norm);
    recent_losses_.push_back(e.loss);
  }
  if (step_ > 1) rates_.push_back(e.tokens_per_second);  // the first step also touches its memory for the first time
  metrics_->emit(e);
  const double rate = train_seconds_ / std::max(progress(), 1e-9);
  const double left = std::max(0.0, rate * (1 - progress()));
  console_.step(e, {.steps = steps_, .eta_seconds = step_ > 1 ? left : -1, .fraction_done = std::min(1.0, progress())});
}

void Trainer::keep_gradient() {
  if (!options_.keep_first_gradient && options_.baseline_gradient == nullptr) return;
  std::vector<float> flat = nn::flat_values(engine_->stream, engine_->parameters.gradients());
  if (options_.baseline_gradient != nullptr) {
    facts_.gradient_cosine = cosine(flat, *options_.baseline_gradient);
    write_run_facts(folder_ + "/run.json", facts_);
  }
  if (options_.keep_first_gradient) first_gradient_ = std::move(flat);
}

// By the second step every form has been multiplied once.
void Trainer::keep_gemm_plans() {
  const std::string plans = gemm_plans_text(engine_->stream.device());
  if (!plans.empty()) write_file_atomically(folder_ + "/gemm-plans.txt", plans);
}

void Trainer::emit_scales(const Readout& shown) {
  if (shown.health.empty()) return;
  ScalesEvent e{.step = step_, .time = seconds(), .amax = shown.amax};
  for (const ops::QuantizeHealth& h : shown.health) e.scale_min.push_back(h.scale_min), e.scale_max.push_back(h.scale_max);
  metrics_->emit(e);
}

void Trainer::emit_health(const Readout& shown) {
  if (shown.health.empty()) return;
  HealthEvent e{.step = step_, .time = seconds()};
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
  ++skipped_, ++skipped_in_a_row_;
  const std::string path = first_nonfinite(*engine_, micro_batches);
  const std::string text = format("step {} skipped: {} is not finite; weights unchanged", step_, path.empty() ? "the gradient norm" : path);
  metrics_->emit(IncidentEvent{.step = step_, .time = seconds(), .kind = "skipped", .path = path, .text = text});
  console_.note(text);
}

void Trainer::evaluate_now() {
  if (corpus_.held_out() == nullptr || last_eval_step_ == step_) return;
  last_eval_step_ = step_;
  const Evaluation e = evaluate(*engine_, *corpus_.held_out());
  eval_loss_ = e.loss;
  metrics_->emit(EvalEvent{.step = step_, .time = seconds(), .loss = e.loss, .tokens = e.tokens});
  console_.note(format("step {}  eval loss {} over {} held-out tokens", step_, fixed(e.loss, 4), grouped(e.tokens)));
}

EndEvent Trainer::end_event(RunState state) {
  const std::size_t last = std::max<std::size_t>(1, recent_losses_.size() / 20);
  const double sum = recent_losses_.empty() ? NAN : std::accumulate(recent_losses_.end() - std::ptrdiff_t(last), recent_losses_.end(), 0.0);
  const char* reason = state == RunState::stopped    ? "stopped by a signal"
                       : state == RunState::diverged ? "too many skipped steps in a row"
                       : steps_ > 0 && step_ >= steps_ ? "all steps done"
                                                       : "time is up";
  return {.step = step_, .time = seconds(), .reason = reason, .train_loss = sum / double(last), .eval_loss = eval_loss_,
          .tokens_per_second = median(rates_), .skipped = skipped_};
}

}  // namespace octet::train
