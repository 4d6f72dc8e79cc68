#include "tests/faults/outliers.hpp"

#include <algorithm>
#include <cmath>

#include "octet/base/check.hpp"
#include "octet/nn/linear.hpp"
#include "tests/faults/operand_sqnr.hpp"

namespace octet::faults {
namespace {

constexpr float outlier = 1e6f;
constexpr int frequent = ' ';

std::string layer_path(const Target& t) { return format("layers.{}.attn.out", t.layer); }

Element middle_of(const Tensor& t) { return {t.shape[0] / 2, t.shape[1] / 3}; }

void store(Stream& stream, const Tensor& t, Element e, float value) {
  const Tensor one = t.rows(e.row, 1).reshaped({t.shape[1]}).rows(e.col, 1);
  if (t.dtype == DType::f16) {
    const Fp16 narrow = to_fp16(value);
    upload(stream, &narrow, one);
  } else {
    set_values(stream, one, &value);
  }
}

/// Modules show each tensor before a layer quantizes it: attention its output, the norm above the layer the gradient of the sum of the
/// residual stream and the layer's output.
class OperandOutlier final : public Disturbance, public Observer {
 public:
  OperandOutlier(const Target& target, scaling::Operand operand)
      : target_(target),
        operand_(operand),
        path_(operand == scaling::Operand::activation ? layer_path(target) : format("layers.{}.norm2.weight", target.layer)),
        what_(operand == scaling::Operand::activation ? "x" : "dx") {}

  void before(const train::StepInputs& in) override {
    if (engine_ != nullptr) engine_->stream.set_observer(nullptr), engine_ = nullptr;
    if (done_ || in.step != target_.step) return;
    engine_ = &in.engine, engine_->stream.set_observer(this);
  }
  void observe(std::string_view path, std::string_view what, const Tensor& t) override {
    if (done_ || path != path_ || what != what_) return;
    done_ = true;
    nn::LinearSite& layer = linear(*engine_, layer_path(target_));
    const Element e = middle_of(t);
    damage_.sqnr_before = operand_sqnr(*engine_, layer, operand_, t, e);
    store(engine_->stream, t, e, outlier);
    damage_.sqnr = operand_sqnr(*engine_, layer, operand_, t, e);
  }
  bool done() const override { return done_; }
  Damage damage() const override { return damage_; }

 private:
  const Target target_;
  const scaling::Operand operand_;
  const std::string path_, what_;
  train::Engine* engine_ = nullptr;
  bool done_ = false;
  Damage damage_;
};

/// Changes weights after an update, before they are quantized for the next step.
class BetweenSteps : public Disturbance, public train::PhaseListener {
 public:
  explicit BetweenSteps(const Target& target) : target_(target) {}
  void before(const train::StepInputs& in) override {
    engine_ = &in.engine;
    if (in.step == target_.step - 1 || in.step == target_.step) measure(*engine_);
    if (!done_ && in.step == target_.step - 1) in.options.listener = this;
  }
  void begins(train::StepPhase part) override {
    if (done_ || part != train::StepPhase::next_codes) return;
    done_ = true;
    change(*engine_);
  }
  bool done() const override { return done_; }

 protected:
  virtual void change(train::Engine&) = 0;
  virtual void measure(train::Engine&) {}
  const Target target_;

 private:
  train::Engine* engine_ = nullptr;
  bool done_ = false;
};

class WeightOutlier final : public BetweenSteps {
 public:
  using BetweenSteps::BetweenSteps;
  Damage damage() const override { return damage_; }

 private:
  void change(train::Engine& e) override {
    const Tensor weight = linear(e, layer_path(target_)).weight().parameter().value.values();
    store(e.stream, weight, middle_of(weight), outlier);
  }
  void measure(train::Engine& e) override {
    nn::LinearSite& layer = linear(e, layer_path(target_));
    const Tensor weight = layer.weight().parameter().value.values();
    const double sqnr = operand_sqnr(e, layer, scaling::Operand::weight, weight, middle_of(weight));
    (done() ? damage_.sqnr : damage_.sqnr_before) = sqnr;
  }
  Damage damage_;
};

class NanRow final : public BetweenSteps {
 public:
  using BetweenSteps::BetweenSteps;

 private:
  void change(train::Engine& e) override {
    const auto& all = e.parameters.list();
    const auto found = std::ranges::find(all, "embedding.weight", &Parameter::path);
    check(found != all.end(), "the model has no embedding.weight");
    const Tensor row = (*found)->value.values().rows(frequent, 1);
    const std::vector<float> nans(std::size_t(row.count()), NAN);
    set_values(e.stream, row, nans.data());
  }
};

}  // namespace

std::unique_ptr<Disturbance> make_outlier(const Target& target, scaling::Operand operand) {
  if (operand == scaling::Operand::weight) return std::make_unique<WeightOutlier>(target);
  return std::make_unique<OperandOutlier>(target, operand);
}

std::unique_ptr<Disturbance> make_nan_row(const Target& target) { return std::make_unique<NanRow>(target); }

}  // namespace octet::faults
