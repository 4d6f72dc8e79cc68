#pragma once

// Only for *.cpu.cpp files: probabilities and their gradients as the products of attention read them, as they are or through 8-bit codes.

#include <type_traits>

#include "octet/ops/quantize/cpu/report.hpp"
#include "octet/ops/quantize/quantize.math.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {

/// Products read the values.
struct PlainScores {
  void pass(std::int64_t, float*, float = 1) const {}
};

/// Products read x = value(encode(x * factor * scale)) * descale / factor. One per operand and call; report() adds what threads saw.
template <class Format>
class CodedScores {
 public:
  explicit CodedScores(const ops::QuantizeSpec& spec)
      : spec_(spec),
        scale_(*spec.scale.f32()),
        descale_(*spec.descale.f32()),
        threads_(threads()),
        seen_(static_cast<Seen*>(std::aligned_alloc(alignof(Seen), sizeof(Seen) * std::size_t(threads_)))) {
    for (int i = 0; i < threads_; ++i) seen_[i] = Seen{};
  }
  ~CodedScores() { std::free(seen_); }
  CodedScores(const CodedScores&) = delete;
  CodedScores& operator=(const CodedScores&) = delete;

  void pass(std::int64_t n, float* x, float factor = 1) const {
    Seen& seen = seen_[this_thread()];
    const float back = descale_ / factor;
    for (std::int64_t i = 0; i < n; ++i) {
      const float value = x[i] * factor;
      const std::int32_t code = encode_lanes<Format>(value * scale_);
      seen.all.amax = larger(magnitude(value), seen.all.amax);
      if (spec_.health != nullptr) count(value, code, seen);
      x[i] = decode_lanes<Format, float>(code) * back;
    }
  }

  void report() const {
    Seen sum;
    for (int i = 0; i < threads_; ++i) merge(sum.all, seen_[i].all), sum.values += seen_[i].values;
    if (sum.values > 0) sum.all.scale_min = sum.all.scale_max = scale_;
    OCTET_ISA::report(spec_, sum.all, sum.values);
  }

 private:
  struct Seen {
    TileQuantizer::Partial all;
    std::int64_t values = 0;
  };

  void count(float value, std::int32_t code, Seen& seen) const {
    ops::HealthCounts<float> n;
    ops::count_health<Format>(value, scale_, code, n);
    seen.all.saturated += n.saturated, seen.all.flushed += n.flushed, seen.all.nonfinite += n.nonfinite;
    ++seen.values;
    if (!spec_.measure_noise || n.nonfinite > 0) return;
    const double error = double(value) - double(decode_lanes<Format, float>(code)) * double(descale_);
    seen.all.signal += double(value) * double(value), seen.all.noise += error * error;
  }

  const ops::QuantizeSpec& spec_;
  float scale_, descale_;
  int threads_;
  Seen* seen_;
};

/// f(scores): of the spec's format, or plain ones.
template <class F>
void with_scores(const ops::QuantizeSpec& spec, const F& f) {
  if (spec.format == DType::e4m3) {
    const CodedScores<E4M3> scores(spec);
    f(scores), scores.report();
  } else {
    const CodedScores<E5M2> scores(spec);
    f(scores), scores.report();
  }
}

}  // namespace octet::cpu::OCTET_ISA
