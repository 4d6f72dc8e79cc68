#include "octet/plan/failures.hpp"

#include <cmath>

#include "octet/base/text.hpp"

namespace octet::plan {
namespace {

double best_interval(double d, double m) {
  if (d >= 2 * m) return m;
  return std::sqrt(2 * d * m) * (1 + std::sqrt(d / (2 * m)) / 3 + d / (18 * m)) - d;
}

// The least n for which a Poisson variable is at most n with this probability.
std::int64_t quantile(double mean, double probability) {
  double term = std::exp(-mean), sum = term;
  std::int64_t n = 0;
  while (sum < probability && n < 100'000) sum += term *= mean / double(++n);
  return n;
}

std::string span_text(double seconds) {
  if (seconds < 3600) return fixed(seconds / 60, 1) + " min";
  return seconds < 48 * 3600 ? fixed(seconds / 3600, 1) + " h" : fixed(seconds / 86400, 1) + " days";
}

std::string percent(double share) { return fixed(100 * share, 1) + "%"; }

}  // namespace

Training training_of(double tokens, const StepTime& step, const Job& job, const Failures& f) {
  const double seconds = tokens / (token_rate(step, job) * double(job.gpus));
  Training out;
  const double m = out.seconds_between_failures = f.mtbf_hours * 3600 / double(job.gpus);
  const double interval = out.seconds_between_checkpoints = best_interval(f.checkpoint_seconds, m);
  out.checkpoints = f.checkpoint_seconds / interval;
  // Of each failure: half an interval on average is computed again, and the restart. More work has more failures.
  const double lost = ((interval + f.checkpoint_seconds) / 2 + f.restart_minutes * 60) / m;
  const double all = lost < 1 ? (1 + out.checkpoints) / (1 - lost) : INFINITY;
  out.restarts = all * f.restart_minutes * 60 / m, out.repeated = all - 1 - out.checkpoints - out.restarts;
  out.days = seconds * all / 86400, out.gpu_hours = out.days * 24 * double(job.gpus);
  out.spare_nodes = quantile(f.repair_hours * 3600 / m, 0.99);
  return out;
}

std::string training_text(double tokens, const Training& t, const Job& job, const Failures& f, double price) {
  if (!std::isfinite(t.days))
    return format("failures one per {}: no step is kept, since a restart takes longer\n", span_text(t.seconds_between_failures));
  std::string out = format(
      "failures one per {} ({} h of one GPU); best with a checkpoint every {}: {} for checkpoints, {} computed again, {} for restarts; "
      "goodput "
      "{}; {} spare nodes for {} h of repair\n",
      span_text(t.seconds_between_failures), grouped(std::llround(f.mtbf_hours)), span_text(t.seconds_between_checkpoints),
      percent(t.checkpoints), percent(t.repeated), percent(t.restarts), percent(t.goodput()), t.spare_nodes, shortest(f.repair_hours));
  out += format("training {} tokens: {}, {} GPU hours", grouped(std::llround(tokens)), span_text(t.days * 86400),
                grouped(std::llround(t.gpu_hours)));
  if (price > 0) {
    const double spares = double(t.spare_nodes * job.per_node()) * t.days * 24;
    out += format(", {} at {} per GPU hour, {} more for spares", grouped(std::llround(t.gpu_hours * price)), shortest(price),
                  grouped(std::llround(spares * price)));
  }
  return out + "\n";
}

}  // namespace octet::plan
