#include "octet/telemetry/metric.hpp"

#include <algorithm>

#include "octet/base/check.hpp"
#include "octet/telemetry/throttling.hpp"

namespace octet::telemetry {
namespace {

using Value = std::optional<double>;

template <class>
struct MemberOf;
template <class E, class T>
struct MemberOf<T E::*> {
  using Event = E;
};
template <class E>
struct MemberOf<double (*)(const E&)> {
  using Event = E;
};
template <auto part>
using EventOf = typename MemberOf<decltype(part)>::Event;

/// A member of an event, or a function of it.
template <auto part>
Value any(const Event& event) {
  const auto* e = std::get_if<EventOf<part>>(&event);
  if (e == nullptr) return std::nullopt;
  if constexpr (std::is_member_object_pointer_v<decltype(part)>) return double(e->*part);
  else return part(*e);
}

/// The same where it is finite.
template <auto part>
Value known(const Event& event) {
  const Value x = any<part>(event);
  return x && std::isfinite(*x) ? x : std::nullopt;
}

/// The extreme of the finite entries of a list.
template <auto list, bool smallest>
Value extreme(const Event& event) {
  const auto* e = std::get_if<EventOf<list>>(&event);
  Value out;
  if (e == nullptr) return out;
  for (const auto x : e->*list)
    if (std::isfinite(double(x)) && (!out || (smallest ? double(x) < *out : double(x) > *out))) out = double(x);
  return out;
}
template <auto list>
constexpr auto least = extreme<list, true>;
template <auto list>
constexpr auto most = extreme<list, false>;

template <auto list>
double mean_of(const GpusEvent& e) {
  double sum = 0, count = 0;
  for (const float x : e.*list)
    if (std::isfinite(x)) sum += double(x), ++count;
  return sum / count;
}
template <auto list>
Value mean(const Event& event) {
  return known<&mean_of<list>>(event);
}
double throttled(const GpusEvent& e) {
  return double(std::ranges::count_if(e.throttling, [](std::int64_t bits) { return (bits & bad_throttling) != 0; }));
}

/// The event of the averaged weights repeats the loss of the last evaluation.
Value eval_loss(const Event& event) {
  const auto* e = std::get_if<EvalEvent>(&event);
  return e != nullptr && !std::isfinite(e->average_loss) ? Value(e->loss) : std::nullopt;
}

// Of the slowest rank, where the host sees what ranks wait for.
double slowest_busy(const RanksEvent& e) {
  const auto slowest = std::size_t(e.slowest);
  return slowest < e.waited.size() && std::isfinite(e.waited[slowest]) ? busy_seconds(e, slowest) : NAN;
}

double least_entropy(const ExpertsEvent& e) {
  double out = NAN;
  for (std::size_t i = 0; i < e.layers.size(); ++i) out = std::fmin(out, load_entropy(e, i));
  return out;
}
double most_load(const ExpertsEvent& e) {
  double out = NAN;
  for (std::size_t i = 0; i < e.layers.size(); ++i)
    for (const double load : relative_loads(e, i)) out = std::fmax(out, load);
  return out;
}

/// Of steps or of evaluations, where the run learns preferences.
template <class E, auto part>
Value of_pairs(const Event& event) {
  const auto* e = std::get_if<E>(&event);
  if (e == nullptr || !e->preferences.known()) return std::nullopt;
  if constexpr (std::is_member_object_pointer_v<decltype(part)>) return e->preferences.*part;
  else return (e->preferences.*part)();
}
using Pairs = PreferenceFigures;
template <auto part>
constexpr auto trained = of_pairs<StepEvent, part>;
template <auto part>
constexpr auto held_out = of_pairs<EvalEvent, part>;

constexpr Metric all[] = {
    {"loss", "Loss", "nats per token", "Mean cross-entropy of the last step in nats per token.", "loss/train", "octet_loss",
     any<&StepEvent::loss>},
    {"loss_z", "Loss z-score", "standard deviations", "Distance of the loss from the last healthy steps in standard deviations.", "",
     "octet_loss_z", any<&StepEvent::loss_z>},
    {"eval_loss", "Held-out loss", "nats per token", "Loss of the last evaluation in nats per token.", "loss/eval", "octet_eval_loss",
     eval_loss},
    {"average_loss", "Held-out loss of averaged weights", "nats per token", "Loss of the averaged weights in nats per token.",
     "loss/eval_average", "octet_average_loss", known<&EvalEvent::average_loss>},
    {"grad_norm", "Gradient norm", "norm of all gradients before clipping", "Norm of all gradients before clipping.",
     "optimizer/gradient_norm", "octet_gradient_norm", any<&StepEvent::grad_norm>},
    {"grad_norm_z", "Gradient norm z-score", "standard deviations",
     "Distance of the gradient norm from the last healthy steps in standard deviations.", "", "octet_gradient_norm_z",
     any<&StepEvent::grad_norm_z>},
    {"param_norm", "Parameter norm", "norm of all parameters", "Norm of all parameters.", "optimizer/parameter_norm",
     "octet_parameter_norm", any<&StepEvent::param_norm>},
    {"lr", "Learning rate", "factor of each update", "Learning rate.", "optimizer/learning_rate", "octet_learning_rate",
     any<&StepEvent::learning_rate>},
    {"loss_scale", "Loss scale", "factor of the loss", "Factor of the loss; absent without loss scaling.", "optimizer/loss_scale",
     "octet_loss_scale", known<&StepEvent::loss_scale>},
    {"mtp_loss", "Loss of further tokens", "nats per token",
     "Mean cross-entropy of further tokens in nats per token; absent without multi-token prediction.", "loss/mtp", "octet_mtp_loss",
     known<&StepEvent::mtp_loss>},
    {"reward_margin", "Reward margin", "of chosen and rejected answers, mean over pairs",
     "Reward of chosen less that of rejected answers, mean over pairs; absent unless a run learns preferences.", "rewards/margins",
     "octet_reward_margin", trained<&Pairs::margin>},
    {"reward_accuracy", "Preference accuracy", "share of pairs whose chosen answer has the larger reward",
     "Share of pairs whose chosen answer has the larger reward.", "rewards/accuracies", "octet_reward_accuracy", trained<&Pairs::accuracy>},
    {"", "Reward of chosen answers", "mean", "Mean reward of chosen answers.", "rewards/chosen", "", trained<&Pairs::chosen_reward>},
    {"", "Reward of rejected answers", "mean", "Mean reward of rejected answers.", "rewards/rejected", "",
     trained<&Pairs::rejected_reward>},
    {"", "Chosen answers", "log-probability", "Mean log-probability of chosen answers.", "logps/chosen", "",
     trained<&Pairs::chosen_log_probability>},
    {"", "Rejected answers", "log-probability", "Mean log-probability of rejected answers.", "logps/rejected", "",
     trained<&Pairs::rejected_log_probability>},
    {"", "Held-out reward margin", "mean over pairs", "Reward margin of held-out pairs.", "eval/rewards/margins",
     "octet_eval_reward_margin", held_out<&Pairs::margin>},
    {"", "Held-out preference accuracy", "share of pairs", "Preference accuracy of held-out pairs.", "eval/rewards/accuracies",
     "octet_eval_reward_accuracy", held_out<&Pairs::accuracy>},
    {"", "Held-out reward of chosen answers", "mean", "Mean reward of chosen held-out answers.", "eval/rewards/chosen", "",
     held_out<&Pairs::chosen_reward>},
    {"", "Held-out reward of rejected answers", "mean", "Mean reward of rejected held-out answers.", "eval/rewards/rejected", "",
     held_out<&Pairs::rejected_reward>},
    {"", "Held-out chosen answers", "log-probability", "Mean log-probability of chosen held-out answers.", "eval/logps/chosen", "",
     held_out<&Pairs::chosen_log_probability>},
    {"", "Held-out rejected answers", "log-probability", "Mean log-probability of rejected held-out answers.", "eval/logps/rejected", "",
     held_out<&Pairs::rejected_log_probability>},
    {"", "Tokens", "trained on so far", "Tokens trained on.", "", "octet_tokens", any<&StepEvent::tokens>},
    {"tokens_per_second", "Throughput", "tokens per second", "Tokens per second of the last step.", "speed/tokens_per_second",
     "octet_tokens_per_second", any<&StepEvent::tokens_per_second>},
    {"limit_share", "Share of the machine's limit", "least time of the step / its time",
     "Least time of the step on this machine divided by its time.", "speed/limit_share", "octet_limit_share", any<&StepEvent::limit_share>},
    {"seconds", "Step time", "seconds", "Seconds of the last step.", "", "octet_step_seconds", any<&StepEvent::seconds>},
    {"data_wait", "Wait for data", "seconds per step", "Seconds of the last step spent waiting for data.", "speed/data_wait",
     "octet_data_wait_seconds", any<&StepEvent::data_wait>},
    {"memory", "Memory", "bytes at the step's peak", "Bytes held at the peak of the last step.", "", "octet_memory_bytes",
     any<&StepEvent::memory_bytes>},
    {"memory_free", "Free memory", "bytes of the device", "Bytes of the device that the run could still allocate.", "",
     "octet_memory_free_bytes", any<&MachineEvent::memory_free>},
    {"disk_free", "Free disk", "bytes of the file system of the run's folder", "Free bytes on the file system of the run's folder.", "",
     "octet_disk_free_bytes", any<&MachineEvent::disk_free>},
    {"", "Age of the checkpoint", "seconds", "Age of the newest checkpoint at the last measurement, or seconds since the process started.",
     "", "octet_checkpoint_age_seconds", any<&MachineEvent::checkpoint_age>},
    {"", "Passes over the data", "passes", "Passes over the data.", "", "octet_epoch", any<&MachineEvent::epoch>},
    {"gpu_utilization", "GPU utilization", "mean share of the time in which a kernel ran",
     "Share of the time in which a kernel ran, mean over GPUs.", "speed/gpu_utilization", "octet_gpu_utilization",
     mean<&GpusEvent::utilization>},
    {"gpu_power", "GPU power", "watts, mean over GPUs", "Electric power in watts, mean over GPUs.", "speed/gpu_power",
     "octet_gpu_power_watts", mean<&GpusEvent::power>},
    {"gpu_temperature", "GPU temperature", "degrees Celsius of the hottest GPU", "Temperature of the hottest GPU in degrees Celsius.",
     "speed/gpu_temperature", "octet_gpu_temperature_celsius", most<&GpusEvent::temperature>},
    {"gpu_clock", "GPU clock", "MHz of the multiprocessors of the slowest GPU", "Clock of the slowest GPU's multiprocessors in MHz.",
     "speed/gpu_clock", "octet_gpu_clock_mhz", least<&GpusEvent::sm_clock>},
    {"gpu_memory", "GPU memory in use", "bytes of the fullest GPU, by all processes", "Bytes in use on the fullest GPU, by all processes.",
     "speed/gpu_memory", "octet_gpu_memory_bytes", most<&GpusEvent::memory_used>},
    {"gpus_throttled", "Throttled GPUs", "with a lower clock because of heat, power supply or hardware",
     "GPUs with a lower clock because of heat, their power supply or a slowdown by hardware.", "speed/gpus_throttled",
     "octet_gpus_throttled", any<&throttled>},
    {"exposed", "Exposed communication", "mean share of a step in collectives", "Mean share of a step in collectives.",
     "ranks/exposed_share", "octet_exposed_share", known<&exposed_share>},
    {"", "Slowest rank", "number of the rank", "The rank with the longest time outside of collectives.", "ranks/slowest",
     "octet_slowest_rank", any<&RanksEvent::slowest>},
    {"slowest_busy", "Slowest rank", "seconds outside of collectives", "Seconds of the slowest rank outside of collectives.",
     "ranks/slowest_busy_seconds", "octet_slowest_busy_seconds", known<&slowest_busy>},
    {"", "Sent bytes", "by each rank in a step", "Bytes that each rank sends in a step.", "ranks/sent_bytes", "octet_sent_bytes",
     any<&RanksEvent::sent_bytes>},
    {"mu", "Shared scales: mu", "smallest factor that leaves room for sums", "Smallest factor of a tensor that leaves room for sums.",
     "worst/mu", "octet_mu_min", least<&SharedScalesEvent::mu>},
    {"overflow", "Shared scales: overflow", "largest share of a tensor", "Largest share of a tensor's sums that have the largest code.",
     "worst/overflow", "octet_overflow_max", most<&SharedScalesEvent::overflow>},
    {"underflow", "Shared scales: underflow", "largest share of a tensor", "Largest share of a tensor's values that were sent as 0.",
     "worst/underflow", "octet_underflow_max", most<&SharedScalesEvent::underflow>},
    {"expert_entropy", "Entropy of loads", "lowest of a layer, as a share of that of equal loads",
     "Lowest entropy of a layer's loads of experts, as a share of that of equal loads.", "worst/expert_entropy", "octet_expert_entropy_min",
     any<&least_entropy>},
    {"expert_load", "Largest load", "of an expert, as a multiple of its layer's mean",
     "Largest load of an expert, as a multiple of its layer's mean.", "", "octet_expert_load_max", any<&most_load>},
    {"saturated_max", "Saturated", "largest share of a tensor", "Largest fraction of clipped values of a tensor.", "worst/saturated",
     "octet_saturated_max", most<&HealthEvent::saturated>},
    {"flushed_max", "Flushed to zero", "largest share of a tensor", "Largest fraction of values of a tensor that became 0.",
     "worst/flushed", "octet_flushed_max", most<&HealthEvent::flushed>},
    {"headroom_min", "Headroom", "bits of the tensor with the least", "Smallest headroom of a tensor in bits.", "", "octet_headroom_min",
     least<&HealthEvent::headroom_bits>},
    {"sqnr_db_min", "SQNR", "dB of the tensor with the least", "Smallest signal to quantization noise ratio of a tensor in dB.", "",
     "octet_sqnr_db_min", least<&HealthEvent::sqnr_db>},
    {"scale_deviation_max", "Spread of block scales", "largest standard deviation of log2 of a tensor's scales, in octaves",
     "Largest standard deviation of log2 of the scales of a tensor's blocks or rows.", "worst/scale_deviation", "octet_scale_deviation_max",
     most<&HealthEvent::scale_deviation>},
    {"lossy_blocks_max", "Blocks with lost values", "largest share of a tensor",
     "Largest share of a tensor's blocks that have a clipped or flushed value.", "worst/lossy_blocks", "octet_lossy_blocks_max",
     most<&HealthEvent::lossy_blocks>},
};

}  // namespace

std::span<const Metric> metrics() { return all; }

const Metric& metric(std::string_view name) {
  const auto found = std::ranges::find_if(all, [&](const Metric& m) { return name == m.name; });
  check(found != std::end(all), "telemetry: there is no metric '{}'", name);
  return *found;
}

}  // namespace octet::telemetry
