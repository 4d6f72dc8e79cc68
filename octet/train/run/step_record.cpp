#include "octet/train/run/step_record.hpp"

#include <algorithm>
#include <cmath>

#include "octet/base/clock.hpp"
#include "octet/data/majority.hpp"
#include "octet/machine/limits.hpp"
#include "octet/train/run/folder/gemm_algorithms_file.hpp"
#include "octet/train/run/dry_run/planned_work.hpp"

namespace octet::train {
namespace {

// Its times are added later.
telemetry::StepEvent event_of(const Readout& shown, std::int64_t step, std::int64_t tokens, Engine& engine) {
  telemetry::StepEvent e{.step = step,
                         .loss = double(shown.loss),
                         .grad_norm = shown.step.gradient_norm,
                         .learning_rate = shown.step.learning_rate,
                         .tokens = tokens,
                         .param_norm = std::sqrt(shown.parameter_squares),
                         .memory_bytes = std::int64_t(engine.stream.arena().peak().total),
                         .skipped = shown.step.skip != 0,
                         .limited = shown.step.skip == ops::adamw_skip_limit,
                         .mtp_loss = shown.ahead_loss,
                         .preferences = shown.preferences};
  if (shown.loss_scale.now != 0) e.loss_scale = double(shown.loss_scale.now);
  return e;
}

}  // namespace

StepRecord::StepRecord(const RunConfig& config, const RunLength& length, RunRanks& ranks, OpenRun& open, StateOfRun& run,
                       Finiteness& finite)
    : config_(config),
      length_(length),
      ranks_(ranks),
      open_(open),
      run_(run),
      finite_(finite),
      gpu_(machine::gpu_meter(engine().stream.device())) {}

void StepRecord::begin() {
  marks_ = {.seconds = monotonic_seconds(),
            .waited = run_.loader.wait_seconds(),
            .exchanging = ranks_.all().seconds(),
            .before = work(),
            .updated = {},
            .told = {},
            .sent_before = SentBytes(engine()),
            .sent_updated = {},
            .sent_told = {}};
}

void StepRecord::updated() {
  marks_.updated = work(), marks_.sent_updated = SentBytes(engine());
  shown_ = read_out(engine());
}

void StepRecord::results(std::span<const data::Batch> micro_batches) {
  const std::int64_t step = run_.at.step;
  Recorder& recorder = run_.recorder;
  recorder.scales(step, shown_);
  if (measured(step)) recorder.health(step, shown_);
  if (measured(step)) recorder.experts(step, engine().model->shape().layers_with_experts(), shown_);
  if (measured(step))
    recorder.shared_scales(step, engine().shared_scales.uses(engine().stream, engine().sharding.gradient_sums(), engine().parameters));
  count_skip(micro_batches);
  recorder.loss_scale(step, shown_.loss_scale);
  if (measured(step) && !std::isfinite(shown_.parameter_squares)) finite_.of_weights();
  marks_.told = work() - marks_.updated, marks_.sent_told = SentBytes(engine()) - marks_.sent_updated;
}

void StepRecord::count_skip(std::span<const data::Batch> micro_batches) {
  Progress& at = run_.at;
  if (shown_.step.skip != 0) ++at.skipped;
  if (shown_.step.skip == ops::adamw_skip_nonfinite) {
    if (!shown_.loss_scale.moves()) ++at.skipped_in_a_row;  // a lower scale may be the remedy
    const RunRanks::Found found = ranks_.first_nonfinite(engine(), micro_batches);
    run_.recorder.skipped(at.step, found.path, found.rank, shown_.loss_scale);
  } else if (shown_.step.skip == 0) {
    at.skipped_in_a_row = 0;
  }
}

void StepRecord::end() {
  const std::int64_t step = run_.at.step;
  ran_ = promised_part(work() - marks_.before - marks_.told);
  sent_ = (SentBytes(engine()) - marks_.sent_before - marks_.sent_told).all();
  if (!measured(step) && shown_.step.skip == 0) keep_to_plan(ran_);
  if (step == 1) store_gemm_algorithms(open_.held(), engine().stream.device());
  event_ = event_of(shown_, step, step * config_.tokens_per_step(), engine());
}

// Each rank compares; run.json has that of the first one.
void StepRecord::keep_to_plan(const telemetry::StepWork& ran) {
  telemetry::RanksFacts& facts = open_.facts().ranks;
  require_as_planned(ran, run_.engine.planned_work(), run_.at.step, ranks_.all().rank());
  if (facts.ran) return;
  facts.ran = ran;
  try {
    open_.write_facts();
  } catch (const IoError& e) {
    run_.recorder.warn(run_.at.step, "folder", format("{}; the run continues, and writes the file at its end", e.what()));
  }
}

Accord StepRecord::timed(Accord own) {
  own.seconds = monotonic_seconds() - marks_.seconds;
  if (measured(run_.at.step)) own.gpu = gpu_->take();
  own.waited = engine().stream.apart_from_host() ? NAN : ranks_.all().seconds() - marks_.exchanging;
  return own;
}

void StepRecord::emit(std::span<const data::Batch> micro_batches) {
  const std::int64_t step = run_.at.step;
  data::Loader& loader = run_.loader;
  const Device device = engine().stream.device();
  if (measured(step)) run_.recorder.ranks(step, ranks_.agreed(), sent_);
  if (measured(step)) run_.recorder.gpus(step, ranks_.agreed());
  if (measured(step)) run_.recorder.machine(step, device, double(loader.position()) / double(loader.epoch_samples()));
  event_.seconds = ranks_.agreed().seconds;
  event_.time = run_.recorder.seconds();
  event_.tokens_per_second = double(config_.tokens_per_step()) / event_.seconds;
  event_.limit_share = machine::least_seconds(work() - marks_.before, machine::machine_limits(device)) / event_.seconds;
  event_.data_wait = loader.wait_seconds() - marks_.waited;
  event_.one_token = data::majority_share(micro_batches);
  show();
}

void StepRecord::show() {
  Progress& at = run_.at;
  at.train_seconds += event_.seconds;
  if (!event_.skipped) at.losses.add(event_.loss);
  if (at.step > 1) at.rates.add(event_.tokens_per_second);  // the first step also touches its memory for the first time
  const double done = length_.done(at, at.step), left = std::max(0.0, at.train_seconds / std::max(done, 1e-9) * (1 - done));
  run_.recorder.step(event_, {.steps = length_.steps(), .eta_seconds = at.step > 1 ? left : -1, .fraction_done = std::min(1.0, done)});
}

}  // namespace octet::train
