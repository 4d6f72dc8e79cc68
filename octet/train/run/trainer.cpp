#include "octet/train/run/trainer.hpp"

#include "octet/base/log.hpp"
#include "octet/base/file.hpp"
#include "octet/machine/limits.hpp"
#include "octet/machine/machine.hpp"
#include "octet/models/hugging_face.hpp"
#include "octet/tensor/cpu/threads.hpp"
#include "octet/train/run/ranks/alike.hpp"
#include "octet/train/run/ranks/call_log_file.hpp"
#include "octet/train/run/engine/layer_change.hpp"
#include "octet/train/run/checkpoints/resume.hpp"
#include "octet/train/run/folder/run_folder.hpp"
#include "octet/train/step/weights.hpp"

namespace octet::train {

Trainer::Trainer(const RunConfig& config, const Corpus& corpus, const TrainOptions& options)
    : options_(options),
      hook_(options.hook != nullptr ? *options.hook : no_hook_),
      corpus_(corpus),
      ranks_(options.ranks),
      references_(corpus.pairs(), corpus.fingerprint_of_pairs()),
      evaluations_(corpus.held_out(config.train.batch), config.train.eval_every, references_),
      samples_(config, corpus.dataset()),
      config_(checked(config)),
      ranks_wanted_(config.ranks.data),
      length_(config_),
      resumed_(resumed_run(options.resume, config_, corpus, ranks_)),
      companions_(checked_model()),
      plan_(placement().dry_run(engine_config(config_))),
      engine_(planned_engine()),
      run_(config_, facts(), companions_, resumed_, engine().stream, ranks_),
      loader_(corpus.training(), loader_options()),
      recorder_(run_.held().path(), plan_.quantizers, options.console, watch_of(config_, run_.facts(), ranks_.leads())),
      checkpoints_(run_.folder(), run_.held(), config_, to_text(corpus.fingerprint()), state_),
      precision_(config_, state_, checkpoints_, resumed_.precision),
      recovery_(config_, ranks_, state_, checkpoints_, precision_, end_) {
  recorder_.use(engine().precision.slots().slots());
  resumed_.checkpoint ? restore() : begin_record();
}

RunConfig Trainer::checked(RunConfig c) {
  ranks_.complete(c.ranks);
  if (ranks_.leads() && c.alerts.enabled) {
    health::require_program(c.alerts.command);
    if (!options_.resume.empty() && !c.alerts.command.empty()) log::info("alerts start: {}", printable(joined(c.alerts.command, " ")));
  }
  require_recovery(c);
  c.steps();
  require_adapters(c);
  c.lora = engine_config(c).adapters;
  if (c.threads > 0) cpu::set_threads(int(c.threads));
  return c;
}

models::Companions Trainer::checked_model() {
  const models::ModelShape shape = engine_config(config_).shape;
  const std::string init = options_.resume.empty() ? config_.model.init : "";
  if (!init.empty() && !data::require_same_tokenizer(corpus_.dataset(), init, shape.vocabulary))
    log::info("the tokenizer of {} is unknown: it has no {}", printable(init), tokenizer::file_name);
  require_kind(corpus_, config_);
  const models::Companions companions = companions_of(config_, options_.resume, corpus_.dataset().tokenizer());
  if (const std::string dropout = models::dropout_of(companions); !dropout.empty())
    log::warn("{}/config.json: {}: Octet trains without dropout", printable(config_.model.folder()), dropout);
  if (options_.save_weights && config_.train.save_weights) models::require_exportable(shape, companions);
  if (!resumed_.checkpoint && !config_.model.init.empty())
    require_weights(io::TensorFolder::open(config_.model.init), engine_config(config_));
  return companions;
}

EnginePlacement Trainer::placement() {
  const Device device = machine::device_named(config_.device);
  return {.device = device,
          .target = machine::machine_target(device, config_.deterministic),
          .ranks = ranks_.all(),
          .planned = {ranks_.stage(config_.ranks), comm::workspace_of(options_.backend)},
          .ranks_here = options_.ranks_here,
          .batch = config_.train.batch,
          .accumulate = config_.train.accumulate};
}

// Its weights are the first ones, unless those of a checkpoint follow.
RunEngine Trainer::planned_engine() {
  const EnginePlacement at = placement();
  if (options_.trace_steps > 0) tracer_.emplace(at.device, options_.trace_steps, at.ranks);
  const EngineConfig wanted = engine_config(config_, resumed_.precision);
  const DryRun dry = resumed_.precision == PrecisionNow{config_.recipe.recipe} ? plan_ : at.dry_run(wanted);
  require_native(dry, wanted.precision);
  if (options_.resume.empty()) require_eight_bits(plan_, config_.recipe);
  require_memory(dry, at.available_bytes(), config_.train);
  require_final_part(config_, at);
  machine::machine_limits(at.device);  // measured while there is memory for it
  RunEngine out(at, wanted, dry);
  require_alike(out.engine().stream, at.ranks,
                {.config = config_,
                 .corpus = corpus_,
                 .companions = companions_,
                 .weights = resumed_.checkpoint ? "" : config_.model.init,
                 .resume = options_.resume,
                 .gemm_type = to_text(machine::matmul_limit(at.device).type)});
  if (plan_.step.emulated_flops > 0)
    log::warn("this GPU does not multiply {}'s codes as they are: they are decoded first, as the plan says", config_.recipe.recipe);
  begin_weights(out.engine());
  return out;
}

// A checkpoint has those that train.
void Trainer::begin_weights(Engine& e) {
  const auto seed = std::uint64_t(config_.seed);
  const bool begins = !resumed_.checkpoint;
  if (begins) e.initialize(seed);
  else e.frozen.initialize(e.stream, seed);
  if (!config_.model.init.empty() && (begins || !e.frozen.list().empty())) load_weights(e, config_.model.init);
  if (!begins) return;
  if (!config_.lora.init.empty()) load_adapters(e, config_.lora, config_.lora.init);
  hook_.begin(e);
}

telemetry::RunFacts Trainer::facts() {
  telemetry::RunFacts out = facts_of(config_, engine().model->shape(), plan_);
  const data::Dataset& text = corpus_.dataset();
  out.data = {text.folder(), std::int64_t(text.token_count()), std::int64_t(text.document_count())};
  out.ranks.wanted = ranks_wanted_, out.ranks.here = options_.ranks_here, out.ranks.backend = options_.backend;
  hook_.describe(out);
  return out;
}

data::Loader::Options Trainer::loader_options() {
  return {.rows = config_.train.batch,
          .stride = config_.train.batch * engine().axes.sequence_groups(),
          .offset = config_.train.batch * engine().axes.sequence_group(),
          .seed = std::uint64_t(config_.seed),
          .prefetch = std::max<std::int64_t>(config_.data.prefetch, config_.train.accumulate)};
}

void Trainer::begin_record() {
  if (!options_.resume.empty()) log::info("{} has no checkpoint yet: begins again", run_.folder());
  recorder_.begin_again();
}

void Trainer::restore() {
  const std::string converted = checkpoints_.restore(*resumed_.checkpoint);
  if (converted.empty()) return;
  log::info("{}", converted);
  resumed_.told.emplace_back("storage", converted);
}

// While an incident is open, recovery decides.
bool Trainer::lost() const {
  if (!end_.recovery_stopped.empty()) return true;
  return !recovery_.orders().incident && (at_.skipped_in_a_row >= config_.train.max_skipped || !end_.not_finite.empty());
}

bool Trainer::done() const { return ranks_.stopping() || length_.all_steps(at_.step) || ranks_.agreed().out_of_time; }

Accord Trainer::own_accord() {
  return {.stop = ranks_.asked_to_stop(), .save = checkpoints_.due(at_.step), .saving = checkpoints_.busy(), .out_of_time = out_of_time()};
}

Outcome Trainer::run() {
  end_.state = [&] {
    const CallLogFile written_if_ranks_fail(run_.folder(), ranks_.all());
    begin();
    return settle(train());
  }();
  end_.all_steps = length_.all_steps(at_.step), end_.seconds = recorder_.seconds();
  end_.average_loss = evaluations_.average_loss();
  const telemetry::EndEvent end = end_event(end_, at_);
  recorder_.end(end);
  run_.facts().state = end_.state;
  run_.write_facts();
  run_.require_in_place(at_.step);
  if (end_.state == telemetry::RunState::diverged) throw DivergedError(divergence_text(end_, at_, run_.facts(), run_.folder()));
  return {run_.held().path(), end_.state, end, engine().stream.arena().peak()};
}

void Trainer::begin() {
  recorder_.start_clock(at_.elapsed);
  checkpoints_.start_clock();
  if (config_.telemetry.tensorboard) recorder_.open_board(run_.facts(), at_.step + 1, at_.skipped);
  for (const auto& [kind, text] : resumed_.told) recorder_.incident(at_.step, kind, text);
  engine_.begin_steps();
  recovery_.begin();
  ranks_.agree(engine().stream, own_accord());
  recovery_.decide();
  if (resumed_.checkpoint) return;
  calibrated_ = engine_.calibrate(loader_, ranks_.stopped_in_step());
  if (calibrated_ && references_.used()) begin_references();
}

// The model is now as it was before the first step.
void Trainer::begin_references() {
  const double begin = recorder_.seconds();
  log::info("computes the reference log-probabilities of {} pairs once", grouped(corpus_.pairs()));
  calibrated_ = references_.compute(engine(), corpus_.all_pairs(config_.train.batch), ranks_.stopped_in_step());
  log::info("reference log-probabilities: {} s", fixed(recorder_.seconds() - begin, 1));
}

telemetry::RunState Trainer::train() {
  for (;;) {
    if (evaluations_.due(at_.step)) evaluate_now();
    samples_.take_if_due(engine(), ranks_, recorder_, at_);
    if (lost()) return telemetry::RunState::diverged;
    if (done()) return telemetry::RunState::finished;
    saving_.if_due(recovery_.orders());
    precision_.use_recipe(recipe_of_step(config_, at_.step + 1));
    traced_step();
    recovery_.decide();
    run_.watch(at_.step, recorder_);
  }
}

// The run's last results and files.
telemetry::RunState Trainer::settle(telemetry::RunState state) {
  checkpoints_.wait_copied();
  if (state == telemetry::RunState::finished && !ranks_.stopping())
    evaluate_now(), evaluations_.run_average(engine(), recorder_, at_, ranks_.stopped_in_step());
  if (state == telemetry::RunState::finished && !finite_.of_result()) state = telemetry::RunState::diverged;
  if (ranks_.stopping() && state == telemetry::RunState::finished) state = telemetry::RunState::stopped;
  recorder_.finish_console();
  run_.require_in_place(at_.step);
  end_trace();
  if (state == telemetry::RunState::diverged) return state;
  if (calibrated_) {
    checkpoints_.finish();
    if (state != telemetry::RunState::finished || options_.save_finished) saving_.last();
  }
  if (options_.save_weights && config_.train.save_weights) save_result();
  return state;
}

void Trainer::save_result() {
  const std::string folder = run_.folder() + "/weights";
  if (config_.lora) save_adapters(engine(), config_.lora, folder, config_.model.init);
  else save_weights(engine(), folder, models::weights_dtype(companions_), stored_companions(companions_, run_.folder()));
}

std::vector<data::Batch> Trainer::next_micro_batches() {
  std::vector<data::Batch> batches;
  for (std::int64_t i = 0; i < config_.train.accumulate; ++i) batches.push_back(loader_.next());
  return batches;
}

double Trainer::learning_rate(std::int64_t step) const {
  return config_.optim.learning_rate * optim::rate_factor(config_.optim.schedule, length_.done(at_, step)) * recovery_.orders().rate_factor;
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
  const std::string text = trace_of_ranks(engine().stream, ranks_.all(), trace);
  run_.held().write(StepTracer::file_name, [&](const std::string& path) {
    write_own_file(path, text);
    log::info("{} steps traced: {}\n{}", trace.steps.size(), path, telemetry::trace_table(telemetry::trace_rows(trace), 12));
  });
}

void Trainer::one_step() {
  record_.begin();
  const health::Orders& orders = recovery_.orders();
  const std::uint64_t sample = loader_.position();
  if (orders.pass_data > 0) loader_.seek(sample + std::uint64_t(orders.pass_data * sequences_per_step(config_)));
  std::vector<data::Batch> micro_batches = next_micro_batches();
  for (data::Batch& batch : micro_batches) references_.fill(batch);
  const std::int64_t step = at_.step + 1;
  ranks_.all().set_step(step);
  StepOptions options{.learning_rate = learning_rate(step),
                      .limits = {float(orders.limits.loss), float(orders.limits.grad_norm)},
                      .measure = record_.measured(step),
                      .measure_next = record_.measured(step + 1),
                      .stopped = ranks_.stopped_in_step(),
                      .listener = tracer_ ? &*tracer_ : nullptr,
                      .before_update = [this] { checkpoints_.wait_copied(); }};
  if (hook_.changes_weights()) checkpoints_.wait_copied();
  hook_.before({step, engine(), micro_batches, options});
  const bool whole = engine_.runner().run(micro_batches, options, [&] {
    at_.step = step;
    record_.updated();
    hook_.after({step, engine(), run_});
    record_.results(micro_batches);
    average_weights();
  });
  if (!whole) return loader_.seek(sample);
  record_.end();
  ranks_.agree(engine().stream, record_.timed(own_accord()));
  record_.emit(micro_batches);
  if (hook_.stops_after(record_.event())) ranks_.ask_to_stop();
}

void Trainer::average_weights() {
  if (!engine().average) return;
  if (length_.done(at_, at_.step) > 1 - config_.train.average) engine().average->add(engine().stream);
  else engine().average->forget();
}

}  // namespace octet::train
