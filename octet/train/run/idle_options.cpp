#include "octet/train/run/idle_options.hpp"

#include <algorithm>

#include "octet/machine/machine.hpp"

namespace octet::train {
namespace {

class Idle {
 public:
  explicit Idle(const config::Origins& origins) : origins_(origins) {}

  template <class T>
  void add(bool idle, const char* key, const T& value, const T& by_default, const std::string& why) {
    if (idle && value != by_default) sentences.push_back(format("{} has no effect: {}", config::cite(origins_, key), why));
  }
  std::vector<std::string> sentences;

 private:
  const config::Origins& origins_;
};

void recipe_options(const PrecisionConfig& c, const std::vector<std::string>& names, Idle& idle) {
  std::vector<std::string_view> read;
  std::string list;
  for (const auto& entry : recipes()) {
    if (std::find(names.begin(), names.end(), entry.name) == names.end()) continue;
    read.insert(read.end(), entry.options.begin(), entry.options.end());
    list += (list.empty() ? "" : ", ") + std::string(entry.name);
  }
  const auto unread = [&](std::string_view option) { return std::find(read.begin(), read.end(), option) == read.end(); };
  const PrecisionConfig plain;
  const RecipeOptions &o = c.options, &d = plain.options;
  idle.add(unread("format"), "recipe.format", o.format, d.format, "nothing has 8 bits under " + list);
  idle.add(unread("history"), "recipe.history", o.history, d.history, "no history is kept under " + list);
  idle.add(unread("algorithm"), "recipe.algorithm", o.algorithm, d.algorithm, "no history is kept under " + list);
  idle.add(unread("margin"), "recipe.margin", o.margin, d.margin, "no scale has a margin under " + list);
  idle.add(unread("calibration"), "recipe.calibration", o.calibration, d.calibration, "no scale comes from past maxima under " + list);
  const std::string why = "nothing has 8 bits under " + list;
  idle.add(read.empty(), "recipe.keep_bf16", c.keep_bf16, plain.keep_bf16, why);
  idle.add(read.empty(), "recipe.first", c.first, plain.first, why);
  idle.add(read.empty(), "recipe.last", c.last, plain.last, why);
  idle.add(read.empty(), "recipe.weights", c.weights, plain.weights, why);
  idle.add(read.empty(), "recipe.fast_accumulation", c.fast_accumulation, plain.fast_accumulation, why);
  idle.add(read.empty(), "recipe.emulation", c.emulation, plain.emulation, why);
  idle.add(read.empty(), "recipe.head", c.head, plain.head, why);
}

void device_options(const RunConfig& c, Idle& idle) {
  const bool on_cpu = c.device == "cpu" || (c.device == "auto" && device_named("auto") == Device::cpu);
  idle.add(on_cpu, "optim.offload", c.optim.offload, optim::AdamWConfig{}.offload, "on the CPU everything is in the host's memory");
}

void loop_options(const RunConfig& c, Idle& idle) {
  const RunConfig plain;
  using Kind = optim::ScheduleConfig::Kind;
  const auto& schedule = c.optim.schedule;
  idle.add(c.train.steps > 0, "train.tokens", c.train.tokens, plain.train.tokens, "train.steps is set, and decides");
  const bool no_evaluation = c.data.eval_fraction == 0;
  idle.add(no_evaluation, "train.eval_every", c.train.eval_every, plain.train.eval_every,
           "nothing is held out, as data.eval_fraction is 0");
  idle.add(no_evaluation, "train.eval_tokens", c.train.eval_tokens, plain.train.eval_tokens,
           "nothing is held out, as data.eval_fraction is 0");
  idle.add(no_evaluation, "train.average", c.train.average, plain.train.average, "nothing is held out, as data.eval_fraction is 0");
  idle.add(schedule.kind != Kind::wsd, "optim.schedule.decay", schedule.decay, plain.optim.schedule.decay,
           "only optim.schedule.kind = \"wsd\" reads it");
  idle.add(schedule.kind == Kind::constant, "optim.schedule.final_ratio", schedule.final_ratio, plain.optim.schedule.final_ratio,
           "the rate does not fall, as optim.schedule.kind is \"constant\"");
}

}  // namespace

std::vector<std::string> idle_options(const RunConfig& c, const config::Origins& origins, const std::vector<std::string>& compared) {
  Idle idle(origins);
  if (!compared.empty())
    idle.add(true, "recipe.name", c.recipe.recipe, PrecisionConfig{}.recipe, "--recipes and --baseline say what is compared");
  idle.add(!compared.empty(), "checkpoint.keep", c.checkpoint.keep, CheckpointConfig{}.keep,
           "a comparison keeps the newest checkpoint alone");
  recipe_options(c.recipe, compared.empty() ? std::vector{c.recipe.recipe} : compared, idle);
  loop_options(c, idle);
  device_options(c, idle);
  return std::move(idle.sentences);
}

}  // namespace octet::train
