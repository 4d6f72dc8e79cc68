#include "octet/optim/adamw.hpp"

#include "octet/numerics/philox.hpp"
#include "octet/ops/clip/clip.hpp"
#include "octet/ops/stored/stored.hpp"
#include "octet/ops/sum_of_squares/sum_of_squares.hpp"

namespace octet::optim {
namespace {

constexpr double smallest = 0x1p-126, largest = 0x1.fffffep127;  // normal numbers of f32, in which the update computes

// Positive values of the configuration must be positive and finite in f32.
void require_representable(const AdamWConfig& c) {
  const auto require = [](const char* key, double x) {
    if (x == 0 || (x >= smallest && x <= largest)) return;
    throw ConfigError(format("optim.{} = {} is {} in f32, in which AdamW computes; choose a number from {} to {}", key, x,
                             x < 1 ? "0" : "infinite", smallest, largest));
  };
  require("learning_rate", c.learning_rate), require("eps", c.eps);
  require("max_grad_norm", c.max_grad_norm), require("weight_decay", c.weight_decay);
}

}  // namespace

void AdamWConfig::fields(config::FieldVisitor& v) {
  v.field("learning_rate", learning_rate, "peak learning rate", {.above = 0}, config::OnResume::may_change);
  v.field("beta1", beta1, "decay of the first moment", {.at_least = 0, .below = 1});
  v.field("beta2", beta2, "decay of the second moment", {.at_least = 0, .below = 1});
  v.field("eps", eps, "added to the root of the second moment", {.above = 0});
  v.field("weight_decay", weight_decay, "decoupled decay of matrices", {.at_least = 0}, config::OnResume::may_change);
  v.field("max_grad_norm", max_grad_norm, "global gradient norm above which gradients are scaled down; 0 never", {.at_least = 0},
          config::OnResume::may_change);
  const std::initializer_list<std::pair<const char*, DType>> types{{"f32", DType::f32}, {"bf16", DType::bf16}};
  v.choice("master", master, "storage of weight matrices; bf16 is rounded stochastically", types);
  v.choice("gradients", gradients, "storage of their gradients, as summed over micro-batches; embedding and head keep f32",
           {{"f32", Storage::f32}, {"bf16", Storage::bf16}, {"e4m3", Storage::e4m3}, {"e4m3_tensor", Storage::e4m3_tensor}});
  v.choice("moments", moments, "storage of AdamW's two moments; bf16 is rounded stochastically", types);
  v.field("offload", offload, "on a GPU: keep the moments in the host's memory, read and written over the bus once per step",
          config::OnResume::may_change);
  v.section("schedule", schedule, "how the learning rate moves", config::OnResume::may_change);
}

AdamW::AdamW(Stream& stream, const AdamWConfig& config, std::vector<Parameter*> parameters)
    : config_(config), parameters_(std::move(parameters)) {
  require_representable(config);
  const auto zeros = [&](Shape s, DType d) { return stream.zeros(s, d, Lifetime::run, Category::optimizer); };
  for (const Parameter* p : parameters_) {
    check(bool(p->gradient.stored()), "adamw: {} has no gradient storage", p->path);
    gradients_.push_back(p->gradient.stored());
  }
  allocate_moments(stream);
  state_ = zeros({ops::adamw_step_floats}, DType::f32);
  const ops::AdamWStep start;
  upload(stream, &start, state_);
  squares_ = zeros({std::int64_t(parameters_.size())}, DType::f64);
  maxima_ = zeros({std::int64_t(parameters_.size())}, DType::f32);
  total_ = zeros({1}, DType::f64);
}

// In one piece: a host's memory is pinned once.
void AdamW::allocate_moments(Stream& stream) {
  const std::int64_t size = std::int64_t(size_of(config_.moments)), unit = std::int64_t(Arena::alignment) / size;
  std::int64_t values = 0;
  for (const Parameter* p : parameters_) values += 2 * round_up(p->shape.count(), unit);
  const bool offload = config_.offload && stream.apart_from_host();
  const Tensor all = stream.zeros({values}, config_.moments, offload ? Lifetime::host : Lifetime::run, Category::optimizer);
  std::byte* next = all.as<std::byte>();
  const auto cut = [&](Shape shape) {
    const Tensor t{next, shape, config_.moments};
    next += round_up(shape.count(), unit) * size;
    return t;
  };
  for (const Parameter* p : parameters_) moments_.push_back({cut(p->shape), cut(p->shape)});
}

void AdamW::step(Stream& stream, double learning_rate, const Tensor& loss, const Tensor& nonfinite, const Tensor& gradient_factor,
                 const Tensor& loss_scale) {
  for (const Parameter* p : parameters_)
    check(p->gradient.complete(), "adamw: the gradient of {} is not complete; run backward to its end before the update", p->path);
  const float rate = float(learning_rate);
  upload(stream, &rate, state_.rows(ops::adamw_step_rate, 1));
  ops::sum_of_squares(stream, {.x = gradients_, .sums = squares_, .total = total_, .maxima = maxima_});
  ops::clip(stream, {.sum_of_squares = total_,
                     .step = state_,
                     .max_norm = float(config_.max_grad_norm),
                     .beta1 = config_.beta1,
                     .beta2 = config_.beta2,
                     .loss = loss,
                     .nonfinite = nonfinite,
                     .gradient_factor = gradient_factor,
                     .loss_scale = loss_scale});
  std::vector<ops::AdamWParameter> updated;
  const auto update = [&] {
    ops::adamw(stream, {.parameters = updated, .step = state_, .beta1 = config_.beta1, .beta2 = config_.beta2, .eps = config_.eps});
    updated.clear();
  };
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    Parameter& p = *parameters_[i];
    const Scope scope(stream);
    const bool coded = p.gradient.coded();
    const Tensor gradient = coded ? stream.empty(p.shape, DType::f32) : p.gradient.stored().values();
    if (coded) update(), ops::decode_stored(stream, p.gradient.stored(), gradient);
    updated.push_back({.value = p.value,
                       .grad = gradient,
                       .moments = moments_[i],
                       .weight_decay = p.decays() ? config_.weight_decay : 0.0,
                       .key = hash_of(p.path.c_str())});
    ++p.version;
    if (coded) update();
  }
  update();
}

void AdamW::visit_state(StateVisitor& visitor) {
  visitor.state("step", state_);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    visitor.state(parameters_[i]->path + ".m", moments_[i].m);
    visitor.state(parameters_[i]->path + ".v", moments_[i].v);
  }
}

}  // namespace octet::optim
