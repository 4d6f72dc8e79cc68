#include "octet/nn/host_parameters.hpp"

namespace octet::nn {

HostParameters::HostParameters(Stream& stream, Parameters& parameters)
    : stream_(stream), parameters_(parameters), device_(parameters.values()), copies_(device_.size()) {
  for (std::size_t i = 0; i < device_.size(); ++i) {
    if (stream.device() == Device::cpu && device_[i].storage == Storage::f32 && !parameters.share().masters) continue;
    copies_[i].resize(std::size_t(device_[i].count()));
    get_values(stream, device_[i], copies_[i].data());
    parameters.list()[i]->value = Stored::plain({copies_[i].data(), device_[i].shape(), DType::f32});
  }
}

HostParameters::~HostParameters() {
  for (std::size_t i = 0; i < device_.size(); ++i) parameters_.list()[i]->value = device_[i];
}

void HostParameters::commit() {
  for (std::size_t i = 0; i < device_.size(); ++i) {
    if (copies_[i].empty()) continue;
    parameters_.list()[i]->value = device_[i];
    parameters_.set_values(stream_, i, copies_[i].data());
  }
}

}  // namespace octet::nn
