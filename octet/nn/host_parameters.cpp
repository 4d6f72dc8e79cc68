#include "octet/nn/host_parameters.hpp"

#include <algorithm>

namespace octet::nn {

HostParameters::HostParameters(Stream& stream, Parameters& parameters, MasterWeights& masters, Partition& partition, bool collect)
    : stream_(stream),
      parameters_(parameters),
      device_(parameters.values()),
      copies_(device_.size()),
      partition_(partition),
      list_(parameters.list()) {
  if (parameters.shard().shards(Sharded::masters)) {
    copy_divided(masters);
  } else {
    for (std::size_t i = 0; i < device_.size(); ++i) copy_values(i);
  }
  if (partition.divides()) show_whole(collect);
  else show_copies();
}

// Parameters of their own, since a part's have another shape.
void HostParameters::show_whole(bool collect) {
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    const Parameter& p = *list_[i];
    if (copies_[i].empty()) {
      copies_[i].resize(std::size_t(p.shape.count()));
      get_values(stream_, device_[i], copies_[i].data());
    }
    copies_[i] = collect ? partition_.whole_values(stream_, p.cut, copies_[i]) : std::vector<float>(std::size_t(p.whole().count()), 0.0f);
    whole_.push_back(std::make_unique<Parameter>(p.path, p.whole(), p.init, p.role));
    whole_.back()->value = Stored::plain({copies_[i].data(), p.whole(), DType::f32});
    list_[i] = whole_.back().get();
  }
}

void HostParameters::copy_values(std::size_t i) {
  if (stream_.device() == Device::cpu && device_[i].storage == Storage::f32) return;
  copies_[i].resize(std::size_t(device_[i].count()));
  get_values(stream_, device_[i], copies_[i].data());
}

void HostParameters::copy_divided(MasterWeights& masters) {
  const std::vector<Parameter*>& list = parameters_.list();
  for (const Bucket& b : parameters_.buckets()) {
    std::vector<float> values(std::size_t(b.count));
    masters.get_values(stream_, b, values.data());
    for (std::size_t i = 0; i < b.parameters.size(); ++i) {
      const auto begin = values.begin() + b.first[i];
      copies_[std::size_t(std::ranges::find(list, b.parameters[i]) - list.begin())].assign(begin, begin + b.parameters[i]->shape.count());
    }
  }
}

void HostParameters::show_copies() {
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    Parameter& p = *parameters_.list()[i];
    if (!copies_[i].empty()) p.value = Stored::plain({copies_[i].data(), p.shape, DType::f32});
  }
}

HostParameters::~HostParameters() {
  for (std::size_t i = 0; i < device_.size(); ++i) parameters_.list()[i]->value = device_[i];
}

void HostParameters::commit() {
  for (std::size_t i = 0; i < device_.size(); ++i) {
    if (copies_[i].empty()) continue;
    parameters_.list()[i]->value = device_[i];
    const Parameter& p = *parameters_.list()[i];
    parameters_.set_values(stream_, i, p.cut ? part_of(p.cut, copies_[i]).data() : copies_[i].data());
  }
}

}  // namespace octet::nn
