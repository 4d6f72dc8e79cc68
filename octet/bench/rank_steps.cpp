#include "octet/bench/rank_steps.hpp"

#include <algorithm>
#include <cmath>

#include "octet/base/clock.hpp"
#include "octet/base/log.hpp"
#include "octet/bench/steps.hpp"
#include "octet/machine/machine.hpp"
#include "octet/parallel/host_values.hpp"
#include "octet/telemetry/exchange_time.hpp"
#include "octet/tensor/cpu/threads.hpp"
#include "octet/train/run/record/step_tracer.hpp"
#include "octet/train/step/sent_bytes.hpp"

namespace octet::bench {
namespace {

using train::StepPhase;

constexpr double learning_rate = 1e-5;
constexpr int traced_parts = 3;  // steps

// Seconds of the update on a CPU, whose exchanges end before they return.
class UpdateClock final : public train::PhaseListener {
 public:
  explicit UpdateClock(const comm::Communicator& ranks) : ranks_(ranks) {}
  void begins(StepPhase part) override {
    const double now = monotonic_seconds(), exchanging = ranks_.seconds();
    if (part == StepPhase::update) began_ = now, exchanged_ = exchanging;
    if (part == StepPhase::read_out) seconds_ = now - began_ - (exchanging - exchanged_);
  }
  double seconds() const { return seconds_; }

 private:
  const comm::Communicator& ranks_;
  double began_ = 0, exchanged_ = 0, seconds_ = 0;
};

// An engine with random weights, and the batches of this rank.
class Run {
 public:
  explicit Run(const RankWork& w)
      : work_(w),
        engine_(checked(w), w.device, target(w), &w.ranks),
        batches_(random_batches(w.config, std::uint64_t(engine_.axes.sequence_group()))) {
    engine_.initialize(1);
    w.loads.apply(engine_);
    runner_.emplace(engine_);
  }

  Stream& stream() { return engine_.stream; }
  train::SentBytes sent() const { return train::SentBytes(engine_); }
  void step(train::PhaseListener* listener = nullptr) { runner_->run(batches_, {.learning_rate = learning_rate, .listener = listener}); }
  // A step, and its fullest load.
  double step_with_loads() {
    double load = 0;
    runner_->run(batches_, {.learning_rate = learning_rate}, [&] { load = ExpertLoads::fullest(engine_); });
    return load;
  }
  // Returns when this rank's work is done, within the limit of ranks.
  void finish() { work_.ranks.finish(engine_.stream), wait(engine_.stream); }

 private:
  static Target target(const RankWork& w) { return machine::machine_target(w.device, w.config.deterministic); }
  static train::EngineConfig checked(const RankWork& w) {
    if (w.config.threads > 0) cpu::set_threads(int(w.config.threads));
    train::EngineConfig config = train::engine_config(w.config);
    w.loads.configure(config);
    const train::DryRun dry = train::dry_run(config, target(w), w.config.train.batch, w.config.train.accumulate,
                                             {w.config.ranks.stage_of(w.ranks.rank()), w.workspace});
    train::require_memory(dry, machine::available_bytes(w.device, w.ranks_here), w.config.train);
    return config;
  }

  const RankWork& work_;
  train::Engine engine_;
  std::vector<data::Batch> batches_;
  std::optional<train::StepRunner> runner_;
};

double median_of(const std::vector<double>& samples) { return samples.empty() ? NAN : timing_of(samples).median; }

// Equally many values of each rank, rank after rank.
std::vector<std::vector<double>> by_rank(Stream& stream, comm::Communicator& ranks, const std::vector<double>& own) {
  const std::vector<double> all = parallel::gathered(stream, ranks, own);
  std::vector<std::vector<double>> out;
  for (std::size_t r = 0; r < std::size_t(ranks.size()); ++r)
    out.emplace_back(all.begin() + std::ptrdiff_t(r * own.size()), all.begin() + std::ptrdiff_t((r + 1) * own.size()));
  return out;
}

// Why a rank cannot trace its GPU, or "".
std::string no_trace(const RankWork& w) {
  std::string own;
  try {
    Trace();
  } catch (const DeviceError& e) {
    own = e.what();
  }
  Stream stream(w.device);
  for (const std::string& reason : parallel::gathered(stream, w.ranks, own))
    if (!reason.empty()) return reason;
  return "";
}

}  // namespace

RankTimes StepsOnRanks::mean() const {
  RankTimes out;
  for (const RankTimes& r : each) {
    out.seconds += r.seconds, out.communication += r.communication, out.update += r.update, out.sent_bytes += r.sent_bytes;
    out.peak_bytes = std::max(out.peak_bytes, r.peak_bytes);
  }
  const auto n = double(each.size());
  out.seconds /= n, out.communication /= n, out.update /= n, out.sent_bytes /= n;
  return out;
}

void time_steps(const RankWork& w, int repeats, RankSamples& samples) {
  Run run(w);
  for (std::int64_t i = 0; i < warm_up_steps(w.config); ++i) samples.fullest_load = run.step_with_loads();
  const bool by_host = w.device == Device::cpu;
  for (int i = 0; i < repeats; ++i) {
    w.ranks.barrier(run.stream());
    run.finish();
    UpdateClock update(w.ranks);
    const train::SentBytes sent = run.sent();
    const double begin = monotonic_seconds(), exchanging = w.ranks.seconds();
    run.step(by_host ? &update : nullptr);
    run.finish();
    samples.seconds.push_back(monotonic_seconds() - begin);
    samples.sent_bytes = double((run.sent() - sent).all());
    if (by_host) samples.communication.push_back(w.ranks.seconds() - exchanging), samples.update.push_back(update.seconds());
  }
  samples.peak_bytes = std::max(samples.peak_bytes, double(run.stream().arena().peak().total));
}

telemetry::StepTrace traced_steps(const RankWork& w, int steps) {
  train::StepTracer tracer(w.device, steps, w.ranks);
  Run run(w);
  if (w.device == Device::cuda) tracer.wait_for_parts(run.stream());
  for (std::int64_t step = 1;; ++step) {
    w.ranks.barrier(run.stream());
    run.finish();
    tracer.begin_step();
    run.step(&tracer);
    run.finish();
    if (tracer.end_step(step)) return tracer.finish();
  }
}

void time_parts(const RankWork& w, RankSamples& samples) {
  if (w.device == Device::cpu) return;
  if (const std::string reason = no_trace(w); !reason.empty())
    return log::warn("steps are not divided into compute, communication and update: {}", reason);
  const telemetry::StepTrace trace = traced_steps(w, traced_parts);
  for (const TracedSpan& step : trace.steps) samples.communication.push_back(telemetry::exchange_time(trace, step).exposed);
  for (const TracedSpan& part : trace.parts)
    if (part.name == name(StepPhase::update))
      samples.update.push_back(double(part.end - part.begin) * 1e-9 - telemetry::exchange_time(trace, part).exposed);
}

StepsOnRanks gathered(const RankWork& w, const RankSamples& own) {
  Stream stream(w.device);
  StepsOnRanks out{.ranks = w.ranks.size(), .tokens = double(w.config.tokens_per_step()), .seconds = {}};
  const std::vector<double> shares{
      median_of(own.seconds), median_of(own.communication), median_of(own.update), own.peak_bytes, own.sent_bytes, own.fullest_load};
  for (const auto& s : by_rank(stream, w.ranks, shares)) {
    out.each.push_back({s[0], s[1], s[2], s[3], s[4]});
    out.fullest_load = std::max(out.fullest_load, s[5]);
  }
  std::vector<double> slowest(own.seconds.size(), 0.0);
  for (const auto& seconds : by_rank(stream, w.ranks, own.seconds))
    for (std::size_t i = 0; i < slowest.size(); ++i) slowest[i] = std::max(slowest[i], seconds[i]);
  out.seconds = timing_of(std::move(slowest));
  return out;
}

}  // namespace octet::bench
