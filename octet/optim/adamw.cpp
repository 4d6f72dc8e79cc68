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

void require_safe(const AdamWConfig& c) {
  const std::string reason = unsafe_reason(c.storage());
  if (!reason.empty() && !c.allow_unsafe) throw ConfigError(format("{}; optim.allow_unsafe = true trains with it nevertheless", reason));
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
  constexpr auto may_change = config::OnResume::may_change;
  v.choice("level", level, "storage of weights, gradients and moments together; docs/recipes.md has what each level stores",
           {{"O0", Level::O0}, {"O1", Level::O1}, {"O2", Level::O2}, {"O3", Level::O3}}, may_change);
  using enum Storage;
  v.choice("master", master, "storage of weight matrices; bf16 and f16 are rounded stochastically", "level",
           {{"f32", f32}, {"bf16", bf16}, {"f16", f16}, {"bf16_nearest", bf16_nearest}, {"e4m3_tensor", e4m3_tensor}}, may_change);
  v.choice("gradients", gradients, "storage of their gradients, as summed over micro-batches; embedding and head keep f32", "level",
           {{"f32", f32}, {"bf16", bf16}, {"e4m3", e4m3}, {"e4m3_tensor", e4m3_tensor}}, may_change);
  v.choice("m", m, "storage of the first moments of matrices; e4m3 has a scale per 128 values", "level",
           {{"f32", f32}, {"bf16", bf16}, {"e4m3", e4m3}, {"e4m3_tensor", e4m3_tensor}, {"e4m3_expanded", e4m3_expanded}}, may_change);
  v.choice("v", this->v, "storage of the second moments of matrices; f16 has a scale per tensor", "level",
           {{"f32", f32},
            {"bf16", bf16},
            {"f16", f16},
            {"e4m3_expanded", e4m3_expanded},
            {"e4m3_root", e4m3_root},
            {"e4m3_tensor", e4m3_tensor}},
           may_change);
  v.replaced("moments", {"m", "v"});
  v.field("allow_unsafe", allow_unsafe, "train with a storage of weights or moments that is known to fail, to see how it does", may_change);
  v.field("offload", offload, "on a GPU: keep the moments in the host's memory, read and written over the bus once per step",
          config::OnResume::may_change);
  v.section("schedule", schedule, "how the learning rate moves", config::OnResume::may_change);
}

StateStorage AdamWConfig::storage() const {
  StateStorage s = storage_of(level);
  s.master = master.value_or(s.master), s.gradients = gradients.value_or(s.gradients);
  s.m = m.value_or(s.m), s.v = v.value_or(s.v);
  return s;
}

AdamW::AdamW(Stream& stream, const AdamWConfig& config, std::vector<ParameterSlice> slices) : config_(config), slices_(std::move(slices)) {
  require_representable(config);
  require_safe(config);
  const auto zeros = [&](Shape s, DType d) { return stream.zeros(s, d, Lifetime::run, Category::optimizer); };
  for (const ParameterSlice& s : slices_) {
    check(bool(s.gradient), "adamw: {} has no gradient storage", s.parameter->path);
    gradients_.push_back(s.gradient);
    counted_.push_back(s.counted() < s.gradient.count() ? s.gradient.part(0, s.counted()) : s.gradient);
  }
  allocate_moments(stream);
  place(stream);
  for (std::size_t i = 0; i < slices_.size(); ++i)
    if (slices_[i].counted() < gradients_[i].count() && (scales_tensor(moments_[i].m.storage) || scales_tensor(moments_[i].v.storage)))
      copies_.push_back(i);
  state_ = zeros({ops::adamw_step_floats}, DType::f32);
  const ops::AdamWStep start;
  upload(stream, &start, state_);
  squares_ = zeros({std::int64_t(slices_.size())}, DType::f64);
  maxima_ = zeros({std::int64_t(slices_.size())}, DType::f32);
  total_ = zeros({1}, DType::f64);
  limits_ = zeros({2}, DType::f32);
}

// A storage with scales is for matrices and tables: norms and biases are few, and their moments stay wide.
Storage moment_storage(const Parameter& p, Storage wanted) {
  return wanted == Storage::bf16 || p.role != ParameterRole::vector ? wanted : Storage::f32;
}

// In one piece: a host's memory is pinned once.
void AdamW::allocate_moments(Stream& stream) {
  const bool offload = config_.offload && stream.apart_from_host();
  std::int64_t size = 0;
  std::byte* next = nullptr;
  const auto take = [&](Shape shape, DType type) {
    const Tensor t{next, shape, type};
    const std::int64_t bytes = round_up(shape.count() * std::int64_t(octet::size_of(type)), std::int64_t(Arena::alignment));
    if (next != nullptr) next += bytes;
    else size += bytes;
    return t;
  };
  std::int64_t scalars = 0;
  const auto take_moment = [&](const ParameterSlice& slice, Storage wanted) {
    const Storage s = moment_storage(*slice.parameter, wanted);
    Stored out{.codes = take(slice.value.shape(), code_type(s)), .scales = {}, .storage = s};
    if (scales_blocks(s)) out.scales = take(scales_shape(s, slice.value.count()), scales_type(s));
    if (scales_tensor(s) && scalars_) out.scales = scalars_.rows(scalars, 1).reshaped({2});
    scalars += scales_tensor(s);
    return out;
  };
  const StateStorage is = config_.storage();
  const auto take_all = [&] {
    moments_.clear(), scalars = 0;
    for (const ParameterSlice& s : slices_) moments_.push_back({take_moment(s, is.m), take_moment(s, is.v)});
  };
  take_all();  // for the size
  if (scalars > 0) scalars_ = stream.zeros({scalars, 2}, DType::f32, Lifetime::run, Category::optimizer);
  next = stream.zeros({size}, DType::u8, offload ? Lifetime::host : Lifetime::run, Category::optimizer).as<std::byte>();
  take_all();
}

// Draws follow the place in the whole parameter, so that a rank of several rounds as one rank does.
void AdamW::place(Stream& stream) {
  using enum ops::AdamWVariable;
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    const Cut& cut = slices_[i].parameter->cut;
    const bool drawn = ops::rounds_stochastically(slices_[i].value.storage, value) ||
                       ops::rounds_stochastically(moments_[i].m.storage, m) || ops::rounds_stochastically(moments_[i].v.storage, v);
    Tensor& places = places_.emplace_back();
    if (!drawn || !cut || cut.whole.count() == slices_[i].parameter->shape.count()) continue;  // a copy is the whole
    std::vector<CutPiece> pieces = cut.pieces;
    pieces.push_back(end_of_places);
    places = stream.empty({std::int64_t(pieces.size()), 4}, DType::i64, Lifetime::run, Category::optimizer);
    upload(stream, pieces.data(), places);
  }
}

void AdamW::measure(Stream& stream) {
  for (const ParameterSlice& s : slices_)
    check(s.parameter->gradient.complete(), "adamw: the gradient of {} is not complete; run backward to its end before the update",
          s.parameter->path);
  ops::sum_of_squares(stream, {.x = counted_, .sums = squares_, .total = total_, .maxima = maxima_});
  const Scope scope(stream);
  for (const std::size_t i : copies_)
    ops::sum_of_squares(stream, {.x = std::span(&gradients_[i], 1),
                                 .sums = stream.empty({1}, DType::f64, Lifetime::scratch, Category::workspace),
                                 .maxima = maxima_.rows(std::int64_t(i), 1)});
}

void AdamW::apply(Stream& stream, double learning_rate, const Tensor& loss, const Tensor& nonfinite, const Tensor& gradient_factor,
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
  std::vector<ops::AdamWParameter> updated;
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    Parameter& p = *slices_[i].parameter;
    updated.push_back({.value = slices_[i].value,
                       .grad = gradients_[i],
                       .moments = moments_[i],
                       .weight_decay = p.decays() ? config_.weight_decay : 0.0,
                       .key = hash_of(p.path.c_str()),
                       .first = slices_[i].first,
                       .places = places_[i],
                       .gradient_amax = maxima_.rows(std::int64_t(i), 1)});
    ++p.version;
  }
  ops::adamw(stream, {.parameters = updated, .step = state_, .beta1 = config_.beta1, .beta2 = config_.beta2, .eps = config_.eps});
}

void AdamW::visit_state(StateVisitor& visitor) {
  visitor.state("step", state_);
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    const ParameterSlice& s = slices_[i];
    visitor.state(s.parameter->path + ".m", {moments_[i].m, s.parameter->shape, s.first, &s.parameter->cut}, Tiny::flush);
    visitor.state(s.parameter->path + ".v", {moments_[i].v, s.parameter->shape, s.first, &s.parameter->cut}, Tiny::keep);
  }
}

}  // namespace octet::optim
