#include "octet/train/step/shared_scales.hpp"

#include <algorithm>

namespace octet::train {

SharedScales::SharedScales(const EngineConfig& c, parallel::Axes& axes, const StageParameters& parameters) : parameters_(parameters) {
  if (!c.optimizer) return;
  const Storage gradients = c.optimizer->storage().gradients;
  std::size_t place = 0;
  for (const StageParameters::NumberedParameter& p : parameters.places()) {
    const comm::Communicator& summed = p.stack ? axes.same_experts() : axes.data();
    if (summed.size() > 1 && parallel::sums_share_scale(*p.whole, c.comm, gradients))
      tensors_.push_back(p.whole->path), places_.push_back(place);
    ++place;
  }
  std::ranges::reverse(tensors_), std::ranges::reverse(places_);
}

std::vector<parallel::ScaleUse> SharedScales::uses(Stream& stream, const parallel::GradientSums& sums,
                                                   const nn::Parameters& parameters) const {
  std::vector<parallel::ScaleUse> out;
  if (places_.empty()) return out;
  const std::map<const Parameter*, parallel::ScaleUse> here = sums.scale_uses(stream);
  std::vector<std::vector<float>> own;
  for (const Parameter* p : parameters.list()) {
    const auto found = here.find(p);
    const parallel::ScaleUse use = found != here.end() ? found->second : parallel::ScaleUse{};
    own.push_back({float(use.mu), float(use.overflow), float(use.underflow)});
  }
  const std::vector<std::vector<float>> all = parameters_.with_other_stages(stream, std::move(own), 3);
  for (const std::size_t place : places_)
    if (const std::vector<float>& use = all[place]; !use.empty()) out.push_back({.mu = use[0], .overflow = use[1], .underflow = use[2]});
  return out;
}

}  // namespace octet::train
