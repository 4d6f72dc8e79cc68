#include "octet/train/step/weight_average.hpp"

#include "octet/ops/running_mean/running_mean.hpp"

namespace octet::train {

WeightAverage::WeightAverage(Stream& stream, nn::Parameters& parameters) : parameters_(parameters) {
  for (const ParameterSlice& s : parameters.slices())
    means_.push_back(stream.zeros(s.value.shape(), DType::f32, Lifetime::run, Category::optimizer));
}

void WeightAverage::add(Stream& stream) {
  if (count_ == 0)
    for (const Tensor& mean : means_) clear(stream, mean);
  ++count_;
  const std::vector<ParameterSlice>& slices = parameters_.slices();
  for (std::size_t i = 0; i < means_.size(); ++i)
    if (means_[i].count() > 0) ops::running_mean(stream, slices[i].value, 1.0f / float(count_), means_[i]);
}

void WeightAverage::visit_state(StateVisitor& visitor) {
  visitor.count("count", count_);
  for (std::size_t i = 0; i < means_.size(); ++i) {
    const ParameterSlice& s = parameters_.slices()[i];
    visitor.state(s.parameter->path, {Stored::plain(means_[i]), s.parameter->shape, s.first, &s.cut()}, Tiny::keep);
  }
}

AveragedWeights::AveragedWeights(Stream& stream, nn::Parameters& parameters, parallel::ShardedWeights& weights,
                                 const WeightAverage& average)
    : stream_(stream), weights_(weights) {
  check(average.count() > 0, "averaged weights: no step was counted");
  std::vector<float> mean;
  for (std::size_t i = 0; i < average.means().size(); ++i) {
    const ParameterSlice& s = parameters.slices()[i];
    if (!weights.reads_master(s)) continue;
    std::vector<float>& own = own_.emplace_back(s, std::vector<float>(std::size_t(s.value.count()))).second;
    mean.resize(own.size());
    nn::get_values(stream, s.value, own.data());
    octet::get_values(stream, average.means()[i], mean.data());
    nn::set_values(stream, s.value, mean.data());
    ++s.parameter->version;
  }
  weights.publish_instead(stream, average.means());
}

void AveragedWeights::end() {
  for (const auto& [slice, values] : own_) {
    nn::set_values(stream_, slice.value, values.data());
    ++slice.parameter->version;
  }
  weights_.publish(stream_, {});
}

}  // namespace octet::train
