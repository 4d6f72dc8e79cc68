#include "octet/nn/host_parameters.hpp"

#include <algorithm>

namespace octet::nn {

namespace {

// The block of each parameter whose value is there only while it is open, or -1.
std::vector<int> blocks_of(const Parameters& parameters) {
  std::vector<int> out(parameters.list().size(), -1);
  for (const Bucket& b : parameters.buckets())
    for (const Parameter* p : b.parameters)
      if (b.value_part) out[std::size_t(std::ranges::find(parameters.list(), p) - parameters.list().begin())] = b.block;
  return out;
}

}  // namespace

HostParameters::HostParameters(Stream& stream, Parameters& parameters, BlockWeights* weights)
    : stream_(stream), parameters_(parameters), device_(parameters.values()), copies_(device_.size()) {
  const std::vector<int> blocks = blocks_of(parameters);
  int open = -1;
  for (std::size_t i = 0; i < device_.size(); ++i) {
    if (blocks[i] >= 0 && blocks[i] != open) {
      check(weights != nullptr, "host parameters: the weights of block {} are divided and cannot be gathered", blocks[i]);
      weights->open(stream, open = blocks[i]);
    }
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
