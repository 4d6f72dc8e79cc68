#include "octet/train/step/weight_average.hpp"

#include "octet/ops/running_mean/running_mean.hpp"

namespace octet::train {

WeightAverage::WeightAverage(Stream& stream, nn::Parameters& parameters) : parameters_(parameters) {
  for (const Stored& value : parameters.values())
    means_.push_back(stream.zeros(value.shape(), DType::f32, Lifetime::run, Category::optimizer));
}

void WeightAverage::add(Stream& stream) {
  if (count_ == 0)
    for (const Tensor& mean : means_) clear(stream, mean);
  ++count_;
  const std::vector<Stored> values = parameters_.values();
  for (std::size_t i = 0; i < means_.size(); ++i) ops::running_mean(stream, values[i], 1.0f / float(count_), means_[i]);
}

void WeightAverage::visit_state(StateVisitor& visitor) {
  visitor.count("count", count_);
  for (std::size_t i = 0; i < means_.size(); ++i) visitor.until_update(parameters_.list()[i]->path, means_[i]);
}

AveragedWeights::AveragedWeights(Stream& stream, nn::Parameters& parameters, const WeightAverage& average)
    : stream_(stream), parameters_(parameters) {
  check(average.count() > 0, "averaged weights: no step was counted");
  std::vector<float> mean;
  for (std::size_t i = 0; i < parameters.list().size(); ++i) {
    Parameter& p = *parameters.list()[i];
    own_.emplace_back(std::size_t(p.value.count()));
    mean.resize(own_.back().size());
    nn::get_values(stream, p.value, own_.back().data());
    octet::get_values(stream, average.means()[i], mean.data());
    nn::set_values(stream, p.value, mean.data());
    ++p.version;
  }
}

AveragedWeights::~AveragedWeights() {
  for (std::size_t i = 0; i < own_.size(); ++i) {
    Parameter& p = *parameters_.list()[i];
    nn::set_values(stream_, p.value, own_[i].data());
    ++p.version;
  }
}

}  // namespace octet::train
