#include "octet/optim/optimizer.hpp"

#include <algorithm>

#include "octet/ops/clip/clip.hpp"
#include "octet/ops/sum_of_squares/sum_of_squares.hpp"
#include "octet/optim/adamw/adamw.hpp"
#include "octet/optim/registry.hpp"

namespace octet::optim {

Optimizer::Optimizer(Stream& stream, const OptimizerConfig& config, std::vector<ParameterSlice> slices)
    : config_(config), slices_(std::move(slices)) {
  config.require_trainable();
  const auto zeros = [&](Shape s, DType d) { return stream.zeros(s, d, Lifetime::run, Category::optimizer); };
  for (const ParameterSlice& s : slices_) {
    check(bool(s.gradient), "optimizer: {} has no gradient storage", s.parameter->path);
    counted_.push_back(s.counted() < s.gradient.count() ? s.gradient.part(0, s.counted()) : s.gradient);
  }
  maxima_ = zeros({std::int64_t(slices_.size())}, DType::f32);
  make_updates(stream);
  state_ = zeros({ops::adamw_step_floats}, DType::f32);
  const ops::AdamWStep start;
  upload(stream, &start, state_);
  squares_ = zeros({std::int64_t(slices_.size())}, DType::f64);
  total_ = zeros({1}, DType::f64);
  limits_ = zeros({2}, DType::f32);
}

void Optimizer::make_updates(Stream& stream) {
  const OptimizerEntry& entry = optimizer_named(config_.name);
  std::vector<std::size_t> own, rest;
  for (std::size_t i = 0; i < slices_.size(); ++i) (entry.takes(*slices_[i].parameter) ? own : rest).push_back(i);
  const auto add = [&](auto* make, std::vector<std::size_t> numbers) {
    if (numbers.empty()) return;
    std::vector<UpdatedSlice> updated;
    for (const std::size_t i : numbers) updated.push_back({slices_[i], maxima_.rows(std::int64_t(i), 1)});
    updates_.push_back(make(stream, config_, std::move(updated)));
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      const std::size_t i = numbers[k];
      if (slices_[i].counted() < slices_[i].gradient.count() && updates_.back()->reads_maximum(k)) copies_.push_back(i);
    }
    of_update_.push_back(std::move(numbers));
  };
  add(entry.make, std::move(own)), add(make_adamw, std::move(rest));
}

void Optimizer::measure(Stream& stream) {
  for (const ParameterSlice& s : slices_)
    check(s.parameter->gradient.complete(), "optimizer: the gradient of {} is not complete; run backward to its end before the update",
          s.parameter->path);
  ops::sum_of_squares(stream, {.x = counted_, .sums = squares_, .total = total_, .maxima = maxima_});
  const Scope scope(stream);
  for (const std::size_t i : copies_)
    ops::sum_of_squares(stream, {.x = std::span(&slices_[i].gradient, 1),
                                 .sums = stream.empty({1}, DType::f64, Lifetime::scratch, Category::workspace),
                                 .maxima = maxima_.rows(std::int64_t(i), 1)});
}

void Optimizer::apply(Stream& stream, double learning_rate, const Tensor& loss, const Tensor& nonfinite, const Tensor& gradient_factor,
                      const Tensor& loss_scale, const StepLimits& limits) {
  const float rate = float(learning_rate);
  upload(stream, &rate, state_.rows(ops::adamw_step_rate, 1));
  const float both[] = {limits.loss, limits.gradient_norm};
  upload(stream, both, limits_);
  ops::clip(stream, {.sum_of_squares = total_,
                     .step = state_,
                     .max_norm = float(config_.max_grad_norm),
                     .beta1 = config_.beta1,
                     .beta2 = config_.beta2,
                     .loss = loss,
                     .nonfinite = nonfinite,
                     .gradient_factor = gradient_factor,
                     .loss_scale = loss_scale,
                     .limits = limits_});
  for (const std::unique_ptr<Update>& u : updates_) u->apply(stream, state_);
  for (const ParameterSlice& s : slices_) ++s.parameter->version;
}

std::vector<Tensor> Optimizer::scalars() const {
  std::vector<Tensor> out;
  for (const std::unique_ptr<Update>& u : updates_) out.push_back(u->scalars());
  return out;
}

std::vector<Optimizer::State> Optimizer::states() const {
  std::vector<State> out;
  for (std::size_t u = 0; u < updates_.size(); ++u)
    updates_[u]->each_state([&](std::size_t k, std::string_view name, const Stored& stored, Tiny tiny) {
      const ParameterSlice& s = slices_[of_update_[u][k]];
      out.push_back({format("{}.{}", s.parameter->path, name), &s, stored, tiny});
    });
  return out;
}

void Optimizer::visit_state(StateVisitor& visitor) {
  visitor.state("step", state_);
  for (const State& s : states()) {
    const Parameter& p = *s.of->parameter;
    visitor.state(s.name, {s.stored, p.shape, s.of->first, &s.of->cut()}, s.tiny);
  }
}

}  // namespace octet::optim
