#include "octet/nn/mlp_or_experts.hpp"

namespace octet::nn {
namespace {

using Form = std::variant<Mlp<SwiGlu>, Experts>;

template <class Part>
Part with_recompute(Part part, const MlpOrExperts::Config& c) {
  part.recompute_activation = c.recompute_activation, part.recomputed = c.recomputed;
  return part;
}

Form make_form(const std::string& path, const MlpOrExperts::Config& c, scaling::Precision& precision, const scaling::Site& site,
               Partition& p) {
  if (c.experts.number > 0) return Form(std::in_place_type<Experts>, path, with_recompute(c.experts, c), precision, site, p);
  return Form(std::in_place_type<Mlp<SwiGlu>>, path, with_recompute(c.dense, c), precision, site, p);
}

}  // namespace

MlpOrExperts::MlpOrExperts(const std::string& path, const Config& c, scaling::Precision& precision, const scaling::Site& site, Partition& p)
    : form_(make_form(path, c, precision, site, p)) {}

}  // namespace octet::nn
