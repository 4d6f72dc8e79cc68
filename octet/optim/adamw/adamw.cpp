#include "octet/optim/adamw/adamw.hpp"

#include "octet/numerics/philox.hpp"
#include "octet/ops/adamw/adamw.hpp"

namespace octet::optim {
namespace {

class AdamW final : public Update {
 public:
  AdamW(Stream& stream, const OptimizerConfig& config, std::vector<UpdatedSlice> slices) : config_(config), slices_(std::move(slices)) {
    const StateStorage is = config.storage();
    std::vector<WantedState> wanted;
    for (const UpdatedSlice& s : slices_)
      for (const Storage storage : {is.m, is.v}) wanted.push_back({s.of.value.shape(), state_storage(s.parameter(), storage)});
    States states = allocate_states(stream, wanted, config.offload);
    for (std::size_t i = 0; i < slices_.size(); ++i) moments_.push_back({states.variables[2 * i], states.variables[2 * i + 1]});
    scalars_ = states.scalars;
    place(stream);
  }

  void apply(Stream&, const Tensor& step) override;
  Tensor scalars() const override { return scalars_; }
  bool reads_maximum(std::size_t i) const override { return scales_tensor(moments_[i].m.storage) || scales_tensor(moments_[i].v.storage); }
  void each_state(const EachState& f) const override {
    for (std::size_t i = 0; i < slices_.size(); ++i) f(i, "m", moments_[i].m, Tiny::flush), f(i, "v", moments_[i].v, Tiny::keep);
  }

 private:
  void place(Stream&);

  OptimizerConfig config_;
  std::vector<UpdatedSlice> slices_;
  std::vector<ops::Moments> moments_;
  std::vector<Tensor> places_;  // of slices of a part: see ops::AdamWParameter
  Tensor scalars_;
};

// Draws follow the place in the whole parameter, so that a rank of several rounds as one rank does.
void AdamW::place(Stream& stream) {
  using enum ops::AdamWVariable;
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    const Parameter& parameter = slices_[i].parameter();
    const Cut& cut = parameter.cut;
    const bool drawn = ops::rounds_stochastically(slices_[i].of.value.storage, value) ||
                       ops::rounds_stochastically(moments_[i].m.storage, m) || ops::rounds_stochastically(moments_[i].v.storage, v);
    Tensor& places = places_.emplace_back();
    if (!drawn || !cut || cut.whole.count() == parameter.shape.count()) continue;  // a copy is the whole
    std::vector<CutPiece> pieces = cut.pieces;
    pieces.push_back(end_of_places);
    places = stream.empty({std::int64_t(pieces.size()), 4}, DType::i64, Lifetime::run, Category::optimizer);
    upload(stream, pieces.data(), places);
  }
}

void AdamW::apply(Stream& stream, const Tensor& step) {
  std::vector<ops::AdamWParameter> updated;
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    const UpdatedSlice& s = slices_[i];
    updated.push_back({.value = s.of.value,
                       .grad = s.of.gradient,
                       .moments = moments_[i],
                       .weight_decay = s.parameter().decays() ? config_.weight_decay : 0.0,
                       .key = hash_of(s.parameter().path.c_str()),
                       .first = s.of.first,
                       .places = places_[i],
                       .gradient_amax = s.gradient_amax});
  }
  ops::adamw(stream, {.parameters = updated, .step = step, .beta1 = config_.beta1, .beta2 = config_.beta2, .eps = config_.eps});
}

}  // namespace

std::unique_ptr<Update> make_adamw(Stream& stream, const OptimizerConfig& config, std::vector<UpdatedSlice> slices) {
  return std::make_unique<AdamW>(stream, config, std::move(slices));
}

}  // namespace octet::optim
