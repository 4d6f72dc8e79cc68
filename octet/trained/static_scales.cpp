#include "octet/trained/static_scales.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "octet/models/hugging_face.hpp"
#include "octet/nn/linear_site.hpp"
#include "octet/numerics/scale.hpp"
#include "octet/scaling/per_tensor.hpp"
#include "octet/train/run/checkpoints/checkpoint_weights.hpp"
#include "octet/train/step/evaluate.hpp"
#include "octet/train/step/weights.hpp"

namespace octet::trained {
namespace {

using scaling::Operand;

struct Layers final : nn::Visitor {
  std::vector<nn::LinearSite*> all;
  void linear(nn::LinearSite& l) override { all.push_back(&l); }
};

std::vector<nn::LinearSite*> layers_of(train::Engine& e) {
  Layers layers;
  e.model->visit(layers);
  return layers.all;
}

// A model without memory, which tells its layers and parameters.
train::Engine planned(const ModelSource& source, const scaling::PrecisionConfig& precision) {
  return train::Engine({.shape = source.shape, .precision = precision, .sequence = 1}, Device::null, {});
}

std::vector<models::LayerScales> scales_of_folder(const ModelSource& source) {
  train::Engine bare = planned(source, {.recipe = "fp32"});
  return models::layer_scales(io::TensorFolder::open(source.folder), source.shape, train::biases_of(bare).behind(bare.parameters.list()));
}

// The path of a layer, of that of its weight.
std::string layer_of(const std::string& parameter) { return parameter.substr(0, parameter.rfind('.')); }

scaling::PrecisionConfig of_run(const ModelSource& source) {
  const auto refuse = [&](const std::string& reason) {
    throw ConfigError(
        format("--frozen: {} stores no scales: {}; evaluate with --recipe, or make a folder with static scales by octet export "
               "--dtype fp8-tensor --calibration 16",
               printable(source.folder), reason));
  };
  if (!scaling::names_eight_bits(*source.precision)) refuse("nothing has 8 bits under its recipe " + source.precision->recipe);
  if (source.precision->forward_values)
    refuse(format("forward of its last steps is in BF16 (recipe.final = \"{}\")", scaling::bf16_forward));
  train::Engine bare = planned(source, *source.precision);
  for (nn::LinearSite* l : layers_of(bare))
    for (const auto& spec : {l->spec(Operand::activation, {}), l->weight().spec({})})
      if (spec.quantizes() && !spec.scale_known()) refuse("those of " + l->path() + " come from the data of each step");
  return *source.precision;
}

}  // namespace

scaling::PrecisionConfig frozen_precision(const ModelSource& source) {
  if (source.checkpoint) return of_run(source);
  scaling::PrecisionConfig out = scaling::per_tensor_known();
  const std::vector<models::LayerScales> stored = scales_of_folder(source);
  train::Engine bare = planned(source, {.recipe = "fp32"});
  for (nn::LinearSite* l : layers_of(bare)) {
    if (l->weight().parameter().role == ParameterRole::router) continue;  // no recipe has codes of it
    const std::string& parameter = l->weight().parameter().path;
    const bool coded = std::ranges::any_of(stored, [&](const models::LayerScales& s) { return s.parameter == parameter; });
    if (!coded && l->path().starts_with("layers.")) out.keep_bf16.push_back(l->path());
  }
  return out;
}

void load_stored_scales(const ModelSource& source, train::Engine& e) {
  if (source.checkpoint) return train::load_checkpoint_scales(e, source.folder);
  train::load_scales(e, io::TensorFolder::open(source.folder));
}

scaling::PrecisionConfig calibrated_precision(const ModelSource& source, const std::vector<std::string>& kept) {
  scaling::PrecisionConfig out = scaling::per_tensor_measured();
  if (source.precision) out.head = source.precision->head;
  for (const std::string& parameter : kept) out.keep_bf16.push_back(layer_of(parameter));
  return out;
}

std::map<std::string, float> calibrated_scales(train::Engine& e, const data::EvalBatches& batches, std::uint64_t count) {
  const std::vector<float> maxima = train::calibrate(e, batches, count);
  const std::vector<scaling::Slot>& slots = e.precision.slots().slots();
  const BlockRule rule{ScaleRule::quotient, E4M3::max, std::numeric_limits<float>::max()};
  std::map<std::string, float> out;
  for (std::size_t i = 0; i < slots.size() && !maxima.empty(); ++i) {
    const float largest = maxima[std::size_t(e.precision.slots().column(int(i)))];  // activations have one
    if (slots[i].operand != Operand::activation || !slots[i].path.starts_with("layers.")) continue;
    if (!std::isfinite(largest))
      throw DataError(format("{}: activations of calibration are not finite, so they have no scale; export another step", slots[i].path));
    if (largest == 0) continue;  // nothing was seen, as of layers that predict further tokens
    out[slots[i].path + ".weight"] = block_scale(largest, rule).descale;
  }
  return out;
}

std::map<std::string, float> scales_of_run(const ModelSource& source) {
  std::map<std::string, float> out;
  if (!source.precision || !scaling::names_eight_bits(*source.precision)) return out;
  train::Engine e({.shape = source.shape, .precision = *source.precision, .sequence = 1}, Device::cpu, {});
  train::load_checkpoint_scales(e, source.folder);
  const auto states = e.precision.quantizer_states(e.stream);
  for (nn::LinearSite* l : layers_of(e)) {
    if (!l->path().starts_with("layers.") || !l->weight().spec({}).quantizes()) continue;
    const ops::QuantizeSpec x = l->spec(Operand::activation, {});
    const auto own = std::ranges::find_if(
        states, [&](const scaling::QuantizerState& q) { return q.slot.path == l->path() && q.slot.operand == Operand::activation; });
    if (!x.scale_known() || x.format != DType::e4m3 || own == states.end()) return {};
    out[l->weight().parameter().path] = own->descales[0];
  }
  return out;
}

}  // namespace octet::trained
