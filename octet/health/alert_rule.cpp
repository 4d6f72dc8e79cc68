#include "octet/health/alert_rule.hpp"

#include <algorithm>

#include "octet/base/check.hpp"
#include "octet/health/window.hpp"

namespace octet::health {
namespace {

constexpr auto info = telemetry::Severity::info, warning = telemetry::Severity::warning, critical = telemetry::Severity::critical;

constexpr AlertRule all[] = {
    {"loss_spike", 6, "robust standard deviations (1.05 x median difference of successive losses) of a loss above the median of its window",
     warning, 64, 32, "steps", "A bad batch, a learning rate that is too high, or a value that left the range of its format.",
     "Look at the batch and at scale alerts of the same step; if it returns, lower optim.learning_rate or optim.max_grad_norm.",
     RecoveryAction::skip},
    {"loss_rise", 2, "the same of the median of 5 losses above the median of its window", warning, 64, 32, "steps",
     "Training loses its progress: the learning rate is too high, or weights are damaged.",
     "Lower optim.learning_rate; after damage, resume from a checkpoint before the first alert.", RecoveryAction::rate,
     losses_of_level - 1},
    {"loss_drop", 4.5, "the same of a loss below the medians of 8 steps and of its window and below the line of 16, in two steps in a row",
     warning, 64, 32, "steps", "Batches are too easy: one text or token again and again, or targets that the input shows.",
     "Look at the batches of these steps; the weights learn them, so resume from a checkpoint before.", RecoveryAction::skip},
    {"one_token", 0.75, "share of the tokens that a step predicts which are the same token, of rank 0's batches", warning, 1, 32, "steps",
     "The data is damaged, or padding is trained on: one token again and again.",
     "Look at the batches of these steps; the weights learn them, so resume from a checkpoint before.", RecoveryAction::skip},
    {"loss_plateau", 0.003, "fall of the mean loss between the halves of its window, as a fraction", warning, 1000, 1000, "steps",
     "The loss does not fall, while gradients are as large as before and the learning rate has not decayed: updates are noise.",
     "Change optim.learning_rate; look for layers with a low SQNR, or compare some steps with recipe.name = \"bf16\".",
     RecoveryAction::rate, 1000},
    {"divergence", 1.3, "loss above the run's best one, as a factor, in every step of its window", critical, 16, 64, "steps",
     "Training was lost and does not recover by itself.",
     "Stop, resume from a checkpoint before the first alert with a lower optim.learning_rate, or with offending layers in BF16.",
     RecoveryAction::rate, 16},
    {"nonfinite", 1, "skipped steps in a row, without those that lower the loss scale", critical, 1, 32, "steps",
     "An overflow, a damaged weight or damaged data. The path is the tensor where the value began.",
     "Look at the named tensor; lower optim.learning_rate, or keep its layer in BF16 by recipe.keep_bf16.", RecoveryAction::skip},
    {"grad_norm_spike", 5, "gradient norm above the median of its window, as a factor, and 10 robust deviations of its logarithm", warning,
     64, 32, "steps", "A bad batch, or an outlier in activations or gradients.",
     "Look at the batch; lower optim.max_grad_norm if spikes return, and optim.learning_rate if the loss follows.", RecoveryAction::skip},
    {"grad_norm_growth", 4, "gradient norm above the lowest block of 32 steps in its window, as a factor, while it rises", warning, 256,
     256, "steps", "Slow loss of stability, often hundreds of steps before the loss rises.",
     "Lower optim.learning_rate, or raise optim.weight_decay.", RecoveryAction::rate, 256},
    {"param_norm_growth", 1.5, "parameter norm above that of the begin of its window, as a factor", warning, 100, 100, "steps",
     "The learning rate is too high for this model, or weight decay does not act.", "Lower optim.learning_rate.", RecoveryAction::rate,
     100},
    {"scale_drop", 16, "fall of the scale that a tensor's maximum allows within its window, as a factor, squared for gradients (dy)",
     warning, 10, 32, "steps", "An outlier entered the tensor. Its other values lose their bits, and NaN may follow.",
     "Look at the named tensor; use a recipe with blocks for its layer (recipe.rules), or keep it in BF16.", RecoveryAction::skip},
    {"scale_rise", 16,
     "rise of the scale that a tensor's maximum allows within its window, for 3 steps, as a factor, squared for gradients (dy)", warning,
     10, 32, "steps", "Values of the layer shrink, or it died; gradients underflow next.",
     "Look at the gradient of the named layer; lower optim.learning_rate, or keep it in BF16.", RecoveryAction::layers},
    {"scale_frozen", 1.15,
     "the smaller maximum of two steps times the tensor's scale, as a factor of the format's largest value, for 3 steps", warning, 3, 32,
     "steps", "The scale does not follow the tensor's maxima: it is frozen, or its history is not updated.",
     "Report a defect, with the run's folder; meanwhile use a recipe that scales by current values, or keep the layer in BF16.",
     RecoveryAction::layers},
    {"saturated", 0.001, "share of a tensor's values that were clipped, in both measurements of its window", warning, 2, 10, "measurements",
     "The scale is too large for the values: a history that lags, or a frozen scale.",
     "Raise recipe.margin, shorten recipe.history, or use a recipe that scales by current values.", RecoveryAction::layers},
    {"flushed", 0.1, "share of a tensor's non-zero values that became 0, in both measurements of its window", warning, 2, 10,
     "measurements", "The format's range is too narrow for the tensor, often because of one outlier.",
     "Use blocks for this operand, or E5M2 where it has E4M3 (recipe.rules), or keep its layer in BF16.", RecoveryAction::layers},
    {"sqnr", 10, "decibels of a tensor's SQNR below that of rounding alone (32.2 dB E4M3, 26.2 dB E5M2), in both measurements", warning, 2,
     10, "measurements", "Quantization loses more of the tensor than rounding: clipped, flushed, or a scale that does not fit.",
     "Use blocks for this operand (recipe.rules), or keep its layer in BF16.", RecoveryAction::layers},
    {"amax_stuck", 25, "steps in which a gradient's maximum has the same bits (16 times as many for activations) while weights move",
     warning, 25, 100, "steps", "The tensor, its measurement or its history is not updated any more.",
     "Look at the layer's gradient: if it is 0, the layer died. Otherwise report a defect, with the run's folder.", RecoveryAction::layers},
    {"loss_scale_falls", 4, "times that the loss scale fell in its window", warning, 50, 50, "steps",
     "Gradients overflow at any scale: the model diverges, or a layer does not fit the format.",
     "Lower optim.learning_rate, or use recipe.name = \"bf16\".", RecoveryAction::rate, 50},
    {"mu_falls", 4, "measurements of its window in which a tensor's mu had fallen (comm.gradients = \"e4m3_shared\")", warning, 10, 10,
     "measurements", "Sums of this gradient overflow again and again: it grows, or its values agree on all ranks.",
     "Look at the gradient norm; lower optim.learning_rate, or send gradients by another comm.gradients.", RecoveryAction::rate, 10},
    {"expert_idle", 0.02, "share of the mean load of its layer that an expert has at most, in every measurement of its window", warning, 5,
     20, "measurements", "The router does not choose the expert any more: its parameters are not trained.",
     "Raise model.router_loss, or use model.router_bias_rate.", RecoveryAction::none},
    {"expert_overload", 4, "load of an expert, as a factor of the mean load of its layer, in every measurement of its window", warning, 5,
     20, "measurements", "The router prefers one expert: others learn less, and the step waits for the longest product.",
     "Raise model.router_loss, or use model.router_bias_rate.", RecoveryAction::none},
    {"router_collapse", 0.5,
     "entropy of a layer's loads, as a share of that of equal loads, below which it is in every measurement of its "
     "window",
     critical, 3, 20, "measurements", "A router sends nearly all tokens to a few experts.",
     "Resume from a checkpoint before, with a higher model.router_loss or a lower optim.learning_rate.", RecoveryAction::rate},
    {"throughput", 0.8, "tokens per second below the run's own median, as a fraction, for 20 steps and a minute", warning, 20, 60, "steps",
     "Another process, a hot or throttled device, a slow disk.", "Look at data_wait, other processes and clocks of the device.",
     RecoveryAction::none},
    {"slow_rank", 1.5, "time of a rank outside of collectives above the median of the ranks, as a factor", warning, 6, 10, "measurements",
     "All ranks wait for this one.", "Look at the machine and the device of the named rank; replace it if it stays slow.",
     RecoveryAction::none},
    {"gpu_hot", 85, "degrees Celsius that a GPU has at least, in every measurement of its window", warning, 3, 10, "measurements",
     "Cooling does not suffice: the GPU lowers its clock next, and all ranks wait for it.",
     "Look at fans and air of the named rank's machine; lower the GPU's power limit if it stays hot.", RecoveryAction::none},
    {"gpu_throttled", 3,
     "measurements in a row in which a GPU lowered its clock because of heat, its power supply or a slowdown by hardware", warning, 3, 10,
     "measurements", "The GPU is slower than it could be, and all ranks wait for it. A power cap is usual and does not count.",
     "Look at temperature and power supply of the named rank's machine; replace the GPU if it stays slow.", RecoveryAction::none},
    {"memory", 0.95, "share of the device's memory that the run holds, of that and of the free memory", warning, 1, 10, "measurements",
     "The next larger step, or another process, ends the run.", "Lower train.batch, add model.recompute, or stop other processes.",
     RecoveryAction::none},
    {"disk", 1.1, "checkpoints for which there must be space, now and, as the free space falls, at the end of the run", warning, 32, 10,
     "measurements", "The run will fill its disk, and checkpoints will fail.",
     "Free space, lower checkpoint.keep, or choose another output folder.", RecoveryAction::none},
    {"checkpoint_age", 3, "age of the newest checkpoint in intervals of the configuration", warning, 1, 10, "measurements",
     "Saving fails or is slow: a crash now loses much work.", "Look for incidents of kind checkpoint, and at the speed of the disk.",
     RecoveryAction::none},
    {"data_repeated", 1, "passes over the data", info, 1, 10, "measurements",
     "The run reads text that it has seen: the training loss falls faster than that of held-out text.",
     "Use more text, or watch the held-out loss.", RecoveryAction::none},
};

}  // namespace

std::span<const AlertRule> alert_rules() { return all; }

const AlertRule& rule(std::string_view name) {
  const auto found = std::ranges::find_if(all, [&](const AlertRule& r) { return name == r.name; });
  check(found != std::end(all), "health: there is no rule '{}'", name);
  return *found;
}

}  // namespace octet::health
