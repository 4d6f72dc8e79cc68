#pragma once

#include "octet/base/clock.hpp"
#include "octet/base/log.hpp"

namespace octet::cli {

/// How long a generation takes, told at its end: the time to load the model, the time to the first token of a batch (the prompts'), and the
/// rate of the others.
class GenerationPace {
 public:
  void loaded() { loaded_ = monotonic_seconds(); }
  void begin_batch() { batch_ = monotonic_seconds(), in_batch_ = 0; }
  void token() {
    const double now = monotonic_seconds();
    if (in_batch_++ == 0) prompts_ += now - batch_;
    else later_ += now - last_, ++counted_;
    last_ = now, ++tokens_;
  }
  void tell() const {
    const std::string rate = counted_ == 0 || later_ <= 0 ? "" : format(", then {} tokens/s", fixed(double(counted_) / later_, 1));
    log::info("loaded in {} s; {} tokens, the first after {} s{}", fixed(loaded_ - start_, 1), tokens_, fixed(prompts_, 2), rate);
  }

 private:
  double start_ = monotonic_seconds(), loaded_ = 0, batch_ = 0, last_ = 0, prompts_ = 0, later_ = 0;
  std::int64_t in_batch_ = 0, tokens_ = 0, counted_ = 0;
};

}  // namespace octet::cli
