#include "octet/train/run/record/step_history.hpp"

#include <algorithm>
#include <cmath>

#include "octet/telemetry/median.hpp"

namespace octet::train {

void StepHistory::add(double value) {
  partial_sum_ += value;
  if (++partial_count_ < width_) return;
  means_.push_back(partial_sum_ / double(width_));
  partial_sum_ = 0, partial_count_ = 0;
  if (means_.size() < capacity) return;
  for (std::size_t i = 0; i < capacity / 2; ++i) means_[i] = (means_[2 * i] + means_[2 * i + 1]) / 2;
  means_.resize(capacity / 2);
  width_ *= 2;
}

double StepHistory::mean_of_last_part(std::int64_t n) const {
  if (count() == 0) return NAN;
  const std::int64_t wanted = std::max<std::int64_t>(1, count() / n) - partial_count_;
  const std::int64_t whole = std::clamp<std::int64_t>((wanted + width_ - 1) / width_, 0, std::int64_t(means_.size()));
  double sum = 0;
  for (auto mean = means_.end() - std::ptrdiff_t(whole); mean != means_.end(); ++mean) sum += *mean;
  return (sum * double(width_) + partial_sum_) / double(whole * width_ + partial_count_);
}

double StepHistory::median() const {
  std::vector<double> values = means_;
  if (partial_count_ > 0) values.push_back(partial_sum_ / double(partial_count_));
  return telemetry::median_of(std::move(values));
}

void StepHistory::visit_state(StateVisitor& v) {
  v.state("means", means_), v.count("width", width_, {.least = 1}), v.state("partial_sum", partial_sum_);
  v.count("partial_count", partial_count_);
}

}  // namespace octet::train
