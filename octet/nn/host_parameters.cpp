#include "octet/nn/host_parameters.hpp"

namespace octet::nn {

HostParameters::HostParameters(Stream& stream, Parameters& parameters) : stream_(stream), parameters_(parameters) {
  if (stream.device() == Device::cpu || stream.device() == Device::null) return;
  copy_ = std::make_unique<std::byte[]>(parameters.values().bytes());
  download(stream, parameters.values(), copy_.get());
  point_into(copy_.get());
}

HostParameters::~HostParameters() {
  if (copy_ != nullptr) point_into(parameters_.values().as<std::byte>());
}

void HostParameters::commit() {
  if (copy_ != nullptr) upload(stream_, copy_.get(), parameters_.values());
}

void HostParameters::point_into(std::byte* base) {
  const std::byte* const before = parameters_.list().empty() ? base : parameters_.list().front()->value.as<std::byte>();
  for (Parameter* p : parameters_.list()) p->value.data = base + (p->value.as<std::byte>() - before);
}

}  // namespace octet::nn
