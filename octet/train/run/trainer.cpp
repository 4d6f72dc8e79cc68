#include "octet/train/run/trainer.hpp"

#include <algorithm>
#include <cmath>

#include "octet/base/clock.hpp"
#include "octet/base/file.hpp"
#include "octet/base/log.hpp"
#include "octet/base/new_file.hpp"
#include "octet/base/path.hpp"
#include "octet/config/write.hpp"
#include "octet/data/majority.hpp"
#include "octet/machine/limits.hpp"
#include "octet/machine/machine.hpp"
#include "octet/tensor/cpu/threads.hpp"
#include "octet/parallel/host_values.hpp"
#include "octet/parallel/long_work.hpp"
#include "octet/train/run/alike.hpp"
#include "octet/train/run/call_log_file.hpp"
#include "octet/train/run/first_gradient.hpp"
#include "octet/train/run/foreign_folder.hpp"
#include "octet/train/run/gemm_algorithms_file.hpp"
#include "octet/train/run/layer_change.hpp"
#include "octet/train/run/planned_work.hpp"
#include "octet/train/run/resume.hpp"
#include "octet/train/run/run_folder.hpp"
#include "octet/models/hugging_face.hpp"
#include "octet/train/step/nonfinite.hpp"
#include "octet/train/step/weights.hpp"

namespace octet::train {

Trainer::Trainer(const RunConfig& config, const Corpus& corpus, const TrainOptions& options)
    : config_(config),
      corpus_(corpus),
      ranks_(options.ranks),
      options_(options),
      evaluations_(corpus.held_out(config.train.batch), config.train.eval_every),
      samples_(config, corpus.dataset()) {
  ranks_wanted_ = config_.ranks.data;
  ranks_.complete(config_.ranks);
  if (ranks_.leads() && config.alerts.enabled) {
    health::require_program(config.alerts.command);
    if (!options.resume.empty() && !config.alerts.command.empty())
      log::info("alerts start: {}", printable(joined(config.alerts.command, " ")));
  }
  require_recovery(config);
  steps_ = config_.steps();
  if (config.threads > 0) cpu::set_threads(int(config.threads));
  if (!options.resume.empty()) open_checkpoint();
  const EngineConfig engine = with_safer_layers(config_, layers_);
  const std::string init = options.resume.empty() ? config.model.init : "";
  const bool known = init.empty() || data::require_same_tokenizer(corpus.dataset(), init, engine.shape.vocabulary);
  require_model(engine);
  const Device device = machine::device_named(config.device);
  if (options.trace_steps > 0) tracer_.emplace(device, options.trace_steps, ranks_.all());
  const Target target = machine::machine_target(device, config.deterministic);
  dry_ = dry_run(engine_config(config_), target, config.train.batch, config.train.accumulate, planned_rank());
  const DryRun now = layers_.empty() ? dry_ : dry_run(engine, target, config.train.batch, config.train.accumulate, planned_rank());
  planned_ = promised_part(now.step);
  require_native(now, engine.precision);
  if (options.resume.empty()) require_eight_bits(dry_, config.recipe);
  require_memory(now, machine::available_bytes(device) / std::size_t(device == Device::cpu ? options.ranks_here : 1), config.train);
  machine::machine_limits(device);  // measured while there is memory for it
  engine_ = std::make_unique<Engine>(engine, device, target, &ranks_.all());
  require_alike(engine_->stream, ranks_.all(),
                {.config = config_,
                 .corpus = corpus_,
                 .companions = companions_,
                 .weights = run_.checkpoint ? "" : config_.model.init,
                 .resume = options_.resume,
                 .gemm_type = to_text(machine::matmul_limit(device).type)});
  if (dry_.step.emulated_flops > 0)
    log::warn("this GPU does not multiply {}'s codes as they are: they are decoded first, as the plan says", config.recipe.recipe);
  if (!run_.checkpoint) begin_weights();
  open_folder();
  loader_ = std::make_unique<data::Loader>(
      corpus.training(), data::Loader::Options{.rows = config.train.batch,
                                               .stride = config.train.batch * engine_->axes.sequence_groups(),
                                               .offset = config.train.batch * engine_->axes.sequence_group(),
                                               .seed = std::uint64_t(config.seed),
                                               .prefetch = std::max<std::int64_t>(config.data.prefetch, config.train.accumulate)});
  recorder_ = std::make_unique<Recorder>(ranks_.leads() ? run_.folder : "", dry_.quantizers,
                                         ranks_.leads() ? options.console : Console::Kind::quiet, watch_of(config_, run_.facts));
  recorder_->use(engine_->precision.slots().slots());
  checkpoints_ = std::make_unique<RunCheckpoints>(
      run_.folder, config_.checkpoint, engine_->stream, *recorder_,
      RunCheckpoints::Contents{.state = [this](StateVisitor& v) { visit_state(v); },
                               .config = config::to_toml(config_),
                               .text = to_text(corpus.dataset().fingerprint()),
                               .ranks = &ranks_.all(),
                               .divided = engine_->divides_state(),
                               .own = engine_->saves_parts() ? Capture::What::slices : Capture::What::none});
  if (run_.checkpoint) restore();
  else begin_record();
  if (!known) log::info("the tokenizer of {} is unknown: it has no {}", printable(init), tokenizer::file_name);
}

// Before anything of the resumed run is changed.
void Trainer::open_checkpoint() {
  const CheckpointStore store(checkpoint_folder(options_.resume));
  std::vector<std::string> damaged;
  if (ranks_.leads()) require_no_links(options_.resume), run_.lock.emplace(options_.resume);
  const Device device = machine::device_named(config_.device);
  Stream stream(device, machine::machine_target(device));
  run_.checkpoint = newest_good(stream, ranks_.all(), store, &damaged);
  for (const auto& sentence : damaged) run_.told.emplace_back("checkpoint", sentence);
  if (!run_.checkpoint) return;
  require_same_run(config_, to_text(corpus_.dataset().fingerprint()), *run_.checkpoint, store.path(run_.checkpoint->step));
  layers_ = safer_layers_of(store.path(run_.checkpoint->step), *run_.checkpoint);
}

void Trainer::open_folder() {
  telemetry::RunFacts& facts = run_.facts;
  facts = facts_of(config_, engine_->model->shape(), dry_);
  facts.ranks.wanted = ranks_wanted_, facts.ranks.here = options_.ranks_here, facts.ranks.backend = options_.backend;
  facts.arm = options_.arm, facts.twin = int(options_.twin), facts.baseline = options_.baseline;
  if (!options_.baseline_folder.empty()) facts.gradient_cosine = NAN;  // until the first step
  parallel::long_work(engine_->stream, ranks_.all(), [this] {
    if (ranks_.leads()) make_folder();  // it also removes what killed writers have left
  });
  run_.folder = parallel::of_first(engine_->stream, ranks_.all(), run_.folder);
}

void Trainer::make_folder() {
  telemetry::RunFacts& facts = run_.facts;
  if (options_.resume.empty()) {
    run_.folder = make_run_folder(config_.output, facts.name);
    run_.lock.emplace(run_.folder);
  } else {
    run_.folder = options_.resume;
    CheckpointStore(checkpoint_folder(run_.folder)).collect_garbage();
    remove_abandoned(run_.folder);
    if (exists(run_.folder + "/run.json")) {
      const telemetry::RunFacts before = telemetry::read_run_facts(run_.folder + "/run.json");
      if (const std::string difference = difference_of(before.machine, facts.machine); !difference.empty()) {
        log::warn("{}", difference);
        run_.told.emplace_back("machine", difference);
      }
      facts.name = before.name, facts.arm = before.arm, facts.twin = before.twin, facts.started = before.started;
      facts.baseline = before.baseline, facts.gradient_cosine = before.gradient_cosine;
    }
  }
  store_companions(run_.folder, companions_);
  write_own_file(run_.folder + "/config.toml", config::to_toml(config_));
  telemetry::write_run_facts(run_.folder + "/run.json", facts);
}

void Trainer::require_model(const EngineConfig& engine) {
  companions_ = companions_of(config_, options_.resume, corpus_.dataset().tokenizer());
  if (const std::string dropout = models::dropout_of(companions_); !dropout.empty())
    log::warn("{}/config.json: {}: Octet trains without dropout", printable(config_.model.folder()), dropout);
  if (options_.save_weights && config_.train.save_weights) models::require_exportable(engine.shape, companions_);
  if (!run_.checkpoint && !config_.model.init.empty()) require_weights(io::TensorFolder::open(config_.model.init), engine);
}

void Trainer::begin_weights() {
  engine_->parameters.initialize(engine_->stream, std::uint64_t(config_.seed));
  if (!config_.model.init.empty()) load_weights(*engine_, config_.model.init);
}

void Trainer::begin_record() {
  if (!options_.resume.empty()) log::info("{} has no checkpoint yet: begins again", run_.folder);
  recorder_->begin_again();
  if (run_.facts.twin > 0) engine_->parameters.nudge(engine_->stream, std::uint64_t(config_.seed), run_.facts.twin);
}

void Trainer::restore() {
  const std::string converted = checkpoints_->restore(*run_.checkpoint);
  if (converted.empty()) return;
  log::info("{}", converted);
  run_.told.emplace_back("storage", converted);
}

void Trainer::visit_state(StateVisitor& v) {
  v.section("engine", *engine_);
  v.section("data", *loader_);
  recorder_->visit_state(v);
  v.section("run", at_);
}

double Trainer::progress(std::int64_t step) const {
  if (steps_ > 0) return double(step) / double(steps_);
  return at_.train_seconds / config_.train.max_seconds;
}

// While an incident is open, recovery decides.
bool Trainer::lost() const {
  if (!end_.recovery_stopped.empty()) return true;
  return !orders_.incident && (at_.skipped_in_a_row >= config_.train.max_skipped || !end_.not_finite.empty());
}

bool Trainer::done() const {
  if (ranks_.stopping()) return true;
  if (steps_ > 0 && at_.step >= steps_) return true;
  return ranks_.alone() ? out_of_time() : ranks_.agreed().out_of_time;
}

bool Trainer::out_of_time() const { return config_.train.max_seconds > 0 && recorder_->seconds() >= config_.train.max_seconds; }

Accord Trainer::own_accord() {
  return {.stop = stop_requested(), .save = checkpoints_->due(at_.step), .saving = checkpoints_->busy(), .out_of_time = out_of_time()};
}

Outcome Trainer::run() {
  const telemetry::RunState state = [&] {
    const CallLogFile written_if_ranks_fail(run_.folder, ranks_.all());
    begin();
    return settle(train());
  }();
  end_.state = state, end_.all_steps = steps_ > 0 && at_.step >= steps_, end_.seconds = recorder_->seconds();
  end_.average_loss = evaluations_.average_loss();
  const telemetry::EndEvent end = end_event(end_, at_);
  recorder_->end(end);
  run_.facts.state = state;
  if (ranks_.leads()) telemetry::write_run_facts(run_.folder + "/run.json", run_.facts);
  require_folder();
  if (state == telemetry::RunState::diverged) throw DivergedError(divergence_text(end_, at_, run_.facts, run_.folder));
  return {ranks_.leads() ? run_.folder : "", state, end, engine_->stream.arena().peak()};
}

void Trainer::begin() {
  recorder_->start_clock(at_.elapsed);
  checkpoints_->start_clock();
  if (config_.telemetry.tensorboard && ranks_.leads()) recorder_->open_board(run_.facts, at_.step + 1, at_.skipped);
  for (const auto& [kind, text] : run_.told) recorder_->incident(at_.step, kind, text);
  runner_.emplace(*engine_);
  begin_recovery();
  ranks_.agree(engine_->stream, own_accord());
  decide();
  if (run_.checkpoint || engine_->precision.calibration_passes() == 0) return;
  const std::uint64_t sample = loader_->position();
  calibrated_ = runner_->calibrate(
      config_.train.accumulate, [this] { return loader_->next(); }, ranks_.stopped_in_step());
  loader_->seek(sample);
}

telemetry::RunState Trainer::train() {
  for (;;) {
    if (evaluations_.due(at_.step)) evaluate_now();
    samples_.take_if_due(*engine_, ranks_, *recorder_, at_);
    if (lost()) return telemetry::RunState::diverged;
    if (done()) return telemetry::RunState::finished;
    save_if_due();
    traced_step();
    decide();
    watch_folder();
  }
}

// The run's last results and files.
telemetry::RunState Trainer::settle(telemetry::RunState state) {
  checkpoints_->wait_copied();
  if (state == telemetry::RunState::finished && !ranks_.stopping())
    evaluate_now(), evaluations_.run_average(*engine_, *recorder_, at_, ranks_.stopped_in_step());
  if (state == telemetry::RunState::finished && !result_is_finite()) state = telemetry::RunState::diverged;
  if (ranks_.stopping() && state == telemetry::RunState::finished) state = telemetry::RunState::stopped;
  recorder_->finish_console();
  require_folder();
  end_trace();
  if (state == telemetry::RunState::diverged) return state;
  if (calibrated_) save_last(state);
  if (options_.save_weights && config_.train.save_weights)
    save_weights(*engine_, run_.folder + "/weights", models::weights_dtype(companions_), companions_);
  return state;
}

void Trainer::save_if_due() {
  if (orders_.incident) return;
  const bool saving = ranks_.alone() ? checkpoints_->busy() : ranks_.agreed().saving;
  const bool committed = !saving && checkpoints_->commit();
  const bool due = ranks_.alone() ? checkpoints_->due(at_.step) : ranks_.agreed().save;
  // Recovery returns to a checkpoint: then its step must not depend on the speed of the disk.
  if (!due || ((saving || committed) && !orders_.acts)) return;
  if (saving || committed) checkpoints_->finish();
  if (!weights_are_finite()) return;
  at_.elapsed = recorder_->seconds();
  checkpoints_->save(at_.step);
}

void Trainer::save_last(telemetry::RunState state) {
  checkpoints_->finish();
  if (state == telemetry::RunState::finished && !options_.save_finished) return;
  at_.elapsed = recorder_->seconds();
  checkpoints_->save_last(at_.step);
}

void Trainer::watch_folder() {
  if (!ranks_.leads()) return;
  const bool lost = !run_.lock->in_place();
  if (lost == folder_lost_) return;
  folder_lost_ = lost;
  recorder_->warn(at_.step, "folder",
                  lost ? format("after step {} the run's folder {} is no longer there: nothing can be saved until it is put back", at_.step,
                                run_.folder)
                       : format("after step {} the run's folder {} is there again", at_.step, run_.folder));
}

// The end of a run whose folder was moved or removed must not look like that of one whose files are there.
void Trainer::require_folder() const {
  if (!ranks_.leads() || run_.lock->in_place()) return;
  throw IoError(
      format("the run's folder {} was moved or removed while it trained, so its end after step {} was not saved; put it back, and resume "
             "from its last checkpoint with octet train --resume {}",
             printable(run_.folder), at_.step, printable(run_.folder)));
}

bool Trainer::weights_are_finite() {
  const std::string parameter = nonfinite_parameter(*engine_);
  if (!parameter.empty()) end_.not_finite = format("the weights of {} are", parameter);
  return tell_not_finite();
}

bool Trainer::result_is_finite() {
  if (!weights_are_finite()) return false;
  if (at_.last_eval_step == at_.step && !std::isfinite(at_.eval_loss)) end_.not_finite = "the loss on held-out text is";
  return tell_not_finite();
}

bool Trainer::tell_not_finite() {
  if (end_.not_finite.empty()) return true;
  recorder_->warn(at_.step, "nonfinite", format("after step {} {} not finite", at_.step, end_.not_finite));
  return false;
}

std::vector<data::Batch> Trainer::next_micro_batches() {
  std::vector<data::Batch> batches;
  for (std::int64_t i = 0; i < config_.train.accumulate; ++i) batches.push_back(loader_->next());
  return batches;
}

void Trainer::traced_step() {
  if (tracer_) tracer_->begin_step();
  one_step();
  if (tracer_ && tracer_->end_step(at_.step)) end_trace();
}

void Trainer::end_trace() {
  if (!tracer_) return;
  const telemetry::StepTrace trace = tracer_->finish();
  tracer_.reset();
  if (trace.steps.empty()) return log::warn("--trace: the run ended before its {}th step, so no step was traced", StepTracer::left_out + 1);
  const std::string path = run_.folder + "/" + StepTracer::file_name, text = trace_of_ranks(engine_->stream, ranks_.all(), trace);
  if (!ranks_.leads()) return;
  write_own_file(path, text);
  log::info("{} steps traced: {}\n{}", trace.steps.size(), path, telemetry::trace_table(telemetry::trace_rows(trace), 12));
}

void Trainer::one_step() {
  const double begin = monotonic_seconds(), waited = loader_->wait_seconds(), exchanging = ranks_.all().seconds();
  const std::uint64_t sample = loader_->position();
  if (orders_.pass_data > 0) loader_->seek(sample + std::uint64_t(orders_.pass_data * sequences_per_step(config_)));
  std::vector<data::Batch> micro_batches = next_micro_batches();
  const std::int64_t step = at_.step + 1;
  const auto measured = [&](std::int64_t s) { return s % config_.train.health_every == 0 || s == 1; };
  const Work before = engine_->stream.work();
  const double rate = config_.optim.learning_rate * optim::rate_factor(config_.optim.schedule, progress(step)) * orders_.rate_factor;
  Readout shown;
  Work told;  // exchanges of the read-out, which no plan has
  ranks_.all().set_step(step);
  StepOptions options{.learning_rate = rate,
                      .limits = {float(orders_.limits.loss), float(orders_.limits.grad_norm)},
                      .measure = measured(step),
                      .measure_next = measured(step + 1),
                      .stopped = ranks_.stopped_in_step(),
                      .listener = tracer_ ? &*tracer_ : nullptr,
                      .before_update = [this] { checkpoints_->wait_copied(); }};
  if (options_.hook != nullptr) {
    checkpoints_->wait_copied();  // it may change weights
    options_.hook->before({step, *engine_, micro_batches, options});
  }
  const bool whole = runner_->run(micro_batches, options, [&] {
    at_.step = step;
    const Work updated = engine_->stream.work();
    shown = read_out(*engine_);
    after_update(shown, micro_batches, measured(step));
    told = engine_->stream.work() - updated;
  });
  if (!whole) return loader_->seek(sample);
  const telemetry::StepWork ran = promised_part(engine_->stream.work() - before - told);
  if (!measured(step) && shown.step.skip == 0) keep_to_plan(ran);
  if (step == 1 && ranks_.leads()) store_gemm_algorithms(run_.folder, engine_->stream.device());

  telemetry::StepEvent e = step_event(shown);
  Accord own = own_accord();
  own.seconds = monotonic_seconds() - begin;
  own.waited = engine_->stream.apart_from_host() ? NAN : ranks_.all().seconds() - exchanging;
  ranks_.agree(engine_->stream, own);
  if (measured(step)) recorder_->ranks(step, ranks_.agreed(), ran.sent_bytes);
  if (measured(step)) recorder_->machine(step, engine_->stream.device(), double(loader_->position()) / double(loader_->epoch_samples()));
  e.seconds = ranks_.agreed().seconds;
  e.time = recorder_->seconds();
  e.tokens_per_second = double(config_.tokens_per_step()) / e.seconds;
  e.limit_share = machine::least_seconds(engine_->stream.work() - before, machine::machine_limits(engine_->stream.device())) / e.seconds;
  e.data_wait = loader_->wait_seconds() - waited;
  e.one_token = data::majority_share(micro_batches);
  record_step(e);
}

// The results of the step; its times are added later.
telemetry::StepEvent Trainer::step_event(const Readout& shown) const {
  telemetry::StepEvent e{.step = at_.step,
                         .loss = double(shown.loss),
                         .grad_norm = shown.step.gradient_norm,
                         .learning_rate = shown.step.learning_rate,
                         .tokens = at_.step * config_.tokens_per_step(),
                         .param_norm = std::sqrt(shown.parameter_squares),
                         .memory_bytes = std::int64_t(engine_->stream.arena().peak().total),
                         .skipped = shown.step.skip != 0,
                         .limited = shown.step.skip == ops::adamw_skip_limit};
  if (shown.loss_scale.now != 0) e.loss_scale = double(shown.loss_scale.now);
  return e;
}

// Each rank compares; the first one notes it for the record.
void Trainer::keep_to_plan(const telemetry::StepWork& ran) {
  telemetry::RanksFacts& facts = run_.facts.ranks;
  require_as_planned(ran, planned_, at_.step, ranks_.all().rank());
  if (!ranks_.leads() || facts.ran) return;
  facts.ran = ran;
  try {
    telemetry::write_run_facts(run_.folder + "/run.json", run_.facts);
  } catch (const IoError& e) {
    recorder_->warn(at_.step, "folder", format("{}; the run continues, and writes the file at its end", e.what()));
  }
}

// While the step's gradients and tables are still there.
void Trainer::after_update(const Readout& shown, std::span<const data::Batch> micro_batches, bool measured) {
  if (at_.step == 1) keep_gradient();
  recorder_->scales(at_.step, shown);
  if (measured) recorder_->health(at_.step, shown);
  if (measured && ranks_.leads()) recorder_->shared_scales(at_.step, engine_->sharding.gradient_sums().scale_uses(engine_->stream));
  if (shown.step.skip != 0) ++at_.skipped;
  if (shown.step.skip == ops::adamw_skip_nonfinite) {
    if (!shown.loss_scale.moves()) ++at_.skipped_in_a_row;  // a lower scale may be the remedy
    const RunRanks::Found found = ranks_.first_nonfinite(*engine_, micro_batches);
    recorder_->skipped(at_.step, found.path, found.rank, shown.loss_scale);
  } else if (shown.step.skip == 0) {
    at_.skipped_in_a_row = 0;
  }
  recorder_->loss_scale(at_.step, shown.loss_scale);
  if (measured && !std::isfinite(shown.parameter_squares)) weights_are_finite();
  if (averages(at_.step)) engine_->average->add(engine_->stream);
  else if (engine_->average) engine_->average->forget();
}

void Trainer::record_step(const telemetry::StepEvent& e) {
  at_.train_seconds += e.seconds;
  if (!e.skipped) at_.losses.add(e.loss);
  if (at_.step > 1) at_.rates.add(e.tokens_per_second);  // the first step also touches its memory for the first time
  const double done = progress(at_.step), left = std::max(0.0, at_.train_seconds / std::max(done, 1e-9) * (1 - done));
  recorder_->step(e, {.steps = steps_, .eta_seconds = at_.step > 1 ? left : -1, .fraction_done = std::min(1.0, done)});
}

void Trainer::keep_gradient() {
  if (!options_.keep_first_gradient && options_.baseline_folder.empty()) return;
  const std::vector<float> flat = engine_->flat_gradients();
  parallel::long_work(engine_->stream, ranks_.all(), [&] {
    if (!ranks_.leads()) return;
    if (options_.keep_first_gradient) write_first_gradient(run_.folder, flat);
    if (options_.baseline_folder.empty()) return;
    run_.facts.gradient_cosine = cosine_with_first_gradient(options_.baseline_folder, flat);
    telemetry::write_run_facts(run_.folder + "/run.json", run_.facts);
  });
}

bool Trainer::averages(std::int64_t step) const { return engine_->average && progress(step) > 1 - config_.train.average; }

}  // namespace octet::train
