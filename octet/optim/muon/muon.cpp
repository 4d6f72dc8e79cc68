#include "octet/optim/muon/muon.hpp"

#include <cmath>

#include "octet/numerics/philox.hpp"
#include "octet/ops/adamw/adamw.hpp"
#include "octet/ops/stored/stored.hpp"
#include "octet/ops/weighted_sum/weighted_sum.hpp"
#include "octet/optim/muon/newton_schulz.hpp"

namespace octet::optim {
namespace {

// Of the 10 steps of newton_schulz: the largest singular value that one step can give is 1.21, and the last ones bring it to 1.
constexpr double largest_singular_value = 1.3;

Shape matrix_of(const Parameter& p) {
  const Shape& s = p.shape;
  return {s[s.rank - 2] / p.matrices, s[s.rank - 1]};
}

// Of a parameter of which another owner has a part: the own part may be a number of whole matrices.
bool has_whole_matrices(const Parameter& p) {
  if (!p.cut) return true;
  const std::int64_t matrix = p.shape.count() / p.matrices;
  return p.cut.pieces.size() == 1 && p.cut.pieces[0].run == p.shape.count() && p.cut.pieces[0].first % matrix == 0;
}

class Muon final : public Update {
 public:
  Muon(Stream& stream, const OptimizerConfig& config, std::vector<UpdatedSlice> slices)
      : config_(config), slices_(std::move(slices)), compute_(stream.apart_from_host() ? DType::bf16 : stream.target().gemm_compute) {
    std::vector<WantedState> wanted;
    for (const UpdatedSlice& s : slices_) {
      check(s.of.whole() && has_whole_matrices(s.parameter()), "muon: {} is a part of a matrix", s.parameter().path);
      wanted.push_back({s.parameter().shape, state_storage(s.parameter(), config.storage().m)});
    }
    const States states = allocate_states(stream, wanted, config.offload);
    momenta_ = states.variables, scalars_ = states.scalars;
    step_ = stream.zeros({ops::adamw_step_floats}, DType::f32, Lifetime::run, Category::optimizer);
  }

  void apply(Stream& stream, const Tensor& step) override {
    copy(stream, step, step_);
    constexpr float one = 1;
    for (const int i : {0, 1}) upload(stream, &one, step_.rows(ops::adamw_step_corrections + i, 1));
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      const Scope scope(stream);
      const Tensor direction = temporary(stream, slices_[i].parameter().shape);
      find_direction(stream, i, step, direction);
      descend(stream, slices_[i], direction);
    }
  }
  Tensor scalars() const override { return scalars_; }
  bool reads_maximum(std::size_t) const override { return false; }
  void each_state(const EachState& f) const override {
    for (std::size_t i = 0; i < slices_.size(); ++i) f(i, "m", momenta_[i], Tiny::flush);
  }

 private:
  static Tensor temporary(Stream& stream, const Shape& shape) {
    return stream.empty(shape, DType::f32, Lifetime::scratch, Category::workspace);
  }
  void find_direction(Stream&, std::size_t i, const Tensor& step, const Tensor& direction);
  void descend(Stream&, const UpdatedSlice&, const Tensor& direction);

  OptimizerConfig config_;
  std::vector<UpdatedSlice> slices_;
  DType compute_;
  std::vector<Stored> momenta_;
  Tensor scalars_;
  Tensor step_;  // f32 [12]: that of the weights' update
};

// And the new momentum.
void Muon::find_direction(Stream& stream, std::size_t i, const Tensor& step, const Tensor& direction) {
  const Scope scope(stream);
  const Shape& shape = slices_[i].parameter().shape;
  const Tensor gradient = temporary(stream, shape), m = temporary(stream, shape);
  ops::decode_stored(stream, slices_[i].of.gradient, gradient);
  ops::decode_stored(stream, momenta_[i], m);
  const auto mu = float(config_.muon.momentum), rest = float(1 - config_.muon.momentum);
  ops::weighted_sum(stream, {.a = mu, .x = m, .b = rest, .y = gradient, .out = m, .step = step});
  ops::encode_stored(stream, m, momenta_[i]);
  ops::weighted_sum(stream, {.a = mu, .x = m, .b = rest, .y = gradient, .out = m, .step = step});
  const Shape matrix = matrix_of(slices_[i].parameter());
  const std::int64_t n = shape.count() / matrix.count();
  for (std::int64_t k = 0; k < n; ++k) {
    const auto part = [&](const Tensor& t) { return Tensor{t.f32() + k * matrix.count(), matrix, DType::f32}; };
    newton_schulz(stream, part(m), part(direction), compute_);
  }
}

// The update of AdamW whose first moment is the direction, and whose root of the second is 1: it stores weights in each storage.
void Muon::descend(Stream& stream, const UpdatedSlice& s, const Tensor& direction) {
  const Shape matrix = matrix_of(s.parameter());
  const double factor = config_.muon.update_rms * std::sqrt(double(std::max(matrix[0], matrix[1])));
  const auto scale = float(factor);
  upload(stream, &scale, step_.rows(ops::adamw_step_gradient_scale, 1));
  const auto none = [&] { return Stored::plain(stream.zeros(s.parameter().shape, DType::f32, Lifetime::scratch, Category::workspace)); };
  const ops::AdamWParameter p{.value = s.of.value,
                              .grad = Stored::plain(direction),
                              .moments = {none(), none()},
                              .weight_decay = s.parameter().decays() ? config_.weight_decay : 0.0,
                              .key = hash_of(s.parameter().path.c_str())};
  ops::adamw(stream, {.parameters = std::span(&p, 1),
                      .step = step_,
                      .beta1 = 0,
                      .beta2 = 1,
                      .eps = 1,
                      .direction_bound = factor * largest_singular_value});
}

}  // namespace

std::unique_ptr<Update> make_muon(Stream& stream, const OptimizerConfig& config, std::vector<UpdatedSlice> slices) {
  return std::make_unique<Muon>(stream, config, std::move(slices));
}

bool takes_muon(const Parameter& p) { return p.role == ParameterRole::matrix && p.shape.rank >= 2 && p.gradient.may_be_narrow(); }

}  // namespace octet::optim
