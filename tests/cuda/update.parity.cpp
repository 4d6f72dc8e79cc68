#include "octet/ops/amax_history/amax_history.hpp"
#include "octet/ops/clip/clip.hpp"
#include "octet/ops/shared_scale/shared_scale.hpp"
#include "octet/ops/sum_of_squares/sum_of_squares.hpp"
#include "tests/cuda/parity.hpp"

// What happens between backward and the next forward: norms, clipping, the update, scales.

namespace octet::parity {
namespace {

Tensor step_of(Side& side, const ops::AdamWStep& s) {
  const auto* words = reinterpret_cast<const float*>(&s);
  return side.from({words, words + ops::adamw_step_floats}, {ops::adamw_step_floats});
}
// The doubles of an AdamWStep may look like NaN as floats: compared as integers.
Tensor words_of(const Tensor& step) { return {step.data, step.shape, DType::i32}; }

Case update(std::int64_t n, float skip, DType dtype) {
  return {format("adamw {} {} skip {}", dtype, n, skip), [=](Side& side) {
            const Tensor value = side.gaussian({n}, 1, dtype), m = side.gaussian({n}, 2, dtype, 1e-3);
            std::vector<float> squares = testing::gaussian(std::size_t(n), 3, 1e-3);
            for (float& v : squares) v *= v;
            const Tensor v = side.from(squares, {n}, dtype);
            const ops::AdamWStep s{.learning_rate = 1e-3f, .bias_correction1 = 0.3f, .bias_correction2 = 0.1f, .gradient_scale = 0.7f, .skip = skip, .updates = 5};
            ops::adamw(side.stream(), {.value = value, .grad = side.gaussian({n}, 4, dtype, 1e-2), .moments = {m, v}, .step = step_of(side, s), .key = 99});
            side.result("value", value, same_bits()), side.result("m", m, same_bits()), side.result("v", v, same_bits());
          }};
}

Case clipping(double squares, float loss, std::int64_t nonfinite) {
  return {format("clip {} loss {} nonfinite {}", squares, loss, nonfinite), [=](Side& side) {
            const Tensor step = step_of(side, {.learning_rate = 0.5f, .power1 = 0.5, .power2 = 0.25});
            ops::clip(side.stream(), {.sum_of_squares = side.raw(std::vector<double>{squares}, {1}), .step = step, .max_norm = 1.0f,
                                      .loss = side.from({loss}, {1}), .nonfinite = side.raw(std::vector<std::int64_t>{0, nonfinite}, {2})});
            side.result("step", words_of(step), same_bits());
          }};
}

Case norms(std::vector<std::int64_t> counts, bool accumulate) {
  return {format("sum_of_squares of {} tensors, accumulate {}", counts.size(), accumulate), [=](Side& side) {
            std::vector<Tensor> x;
            double values = 0;
            for (std::size_t i = 0; i < counts.size(); ++i) x.push_back(side.gaussian({counts[i]}, 10 + i)), values += double(counts[i]);
            const std::int64_t n = std::int64_t(counts.size());
            const Tensor sums = side.raw(std::vector<double>(std::size_t(n), 2.0), {n}), total = side.raw(std::vector<double>{3.0}, {1});
            ops::sum_of_squares(side.stream(), {.x = x, .sums = sums, .total = total, .accumulate = accumulate});
            const double bound = 4 * values * values * 0x1p-53;
            side.result("sums", sums, within(bound)), side.result("total", total, within(bound));
          }};
}

Case history(std::int64_t length, std::int64_t slots, float skip, ops::AmaxChoice choice) {
  return {format("amax_history {} x {} skip {} choice {}", length, slots, skip, int(choice)), [=](Side& side) {
            std::vector<float> maxima = testing::gaussian(std::size_t(length * slots), 1, 3.0), scales(std::size_t(slots * ops::scale_slot_floats), 2.0f);
            for (std::size_t i = 0; i < maxima.size(); ++i) maxima[i] = i % 11 == 0 ? 0 : i % 13 == 5 ? INFINITY : i % 17 == 3 ? NAN : std::fabs(maxima[i]);
            const Shape table{slots, ops::scale_slot_floats};
            const Tensor all = side.from(maxima, {length, slots}), scale = side.from(scales, table), descale = side.from(scales, table);
            ops::advance_amax_history(side.stream(), {.history = all, .scale = scale, .descale = descale,
                                                      .format_max = side.from(std::vector<float>(std::size_t(slots), 448.0f), {slots}),
                                                      .skip = side.from({skip}, {1}), .margin = 1, .choice = choice});
            side.result("history", all, same_bits()), side.result("scale", scale, same_bits()), side.result("descale", descale, same_bits());
          }};
}

Case shared(std::int64_t slots, float skip) {
  return {format("shared_scale {} skip {}", slots, skip), [=](Side& side) {
            std::vector<float> maxima = testing::gaussian(std::size_t(slots), 1, 3.0);
            for (float& a : maxima) a = std::fabs(a);
            const std::vector<float> ones(std::size_t(slots * ops::scale_slot_floats), 1.0f);
            const Shape table{slots, ops::scale_slot_floats};
            const Tensor scale = side.from(ones, table), descale = side.from(ones, table);
            ops::update_shared_scale(side.stream(), {.amax = side.from(maxima, {slots}), .scale = scale, .descale = descale, .skip = side.from({skip}, {1}),
                                                     .format_max = 448.0f});
            side.result("scale", scale, same_bits()), side.result("descale", descale, same_bits());
          }};
}

std::vector<Case> make() {
  std::vector<Case> cases;
  for (const std::int64_t n : {0, 1, 3, 1000, 100003})
    for (const float skip : {0.0f, 1.0f}) cases.push_back(update(n, skip, DType::f32)), cases.push_back(update(n, skip, DType::bf16));
  for (const double squares : {0.0, 0.25, 16.0, double(INFINITY)}) cases.push_back(clipping(squares, 1, 0));
  cases.push_back(clipping(1, NAN, 0)), cases.push_back(clipping(1, 1, 4));
  for (const bool accumulate : {false, true}) cases.push_back(norms({1}, accumulate)), cases.push_back(norms(std::vector<std::int64_t>(300, 1000), accumulate)),
      cases.push_back(norms({0, 16384, 16385, 400000, 7}, accumulate));
  for (const float skip : {0.0f, 1.0f})
    for (const auto choice : {ops::AmaxChoice::max, ops::AmaxChoice::most_recent})
      cases.push_back(history(1, 5, skip, choice)), cases.push_back(history(2, 200, skip, choice)), cases.push_back(history(1024, 333, skip, choice));
  for (const std::int64_t slots : {1, 7, 1000}) cases.push_back(shared(slots, 0)), cases.push_back(shared(slots, 1));
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
