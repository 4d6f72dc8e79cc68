#include "octet/ops/amax_history/amax_history.hpp"
#include "octet/ops/clip/clip.hpp"
#include "octet/ops/loss_scale/loss_scale.hpp"
#include "octet/ops/stored/stored.hpp"
#include "octet/ops/shared_scale/shared_scale.hpp"
#include "octet/ops/sum_of_squares/sum_of_squares.hpp"
#include "tests/cuda/parity.hpp"

// Between backward and the next forward: norms, clipping, the update, scales.

namespace octet::parity {
namespace {

Tensor step_of(Side& side, const ops::AdamWStep& s) {
  const auto* words = reinterpret_cast<const float*>(&s);
  return side.from({words, words + ops::adamw_step_floats}, {ops::adamw_step_floats});
}
// The doubles of an AdamWStep may look like NaN as floats: compared as integers.
Tensor words_of(const Tensor& step) { return {step.data, step.shape, DType::i32}; }

ops::AdamWParameter parameter(Side& side, std::int64_t n, DType dtype, std::uint64_t key) {
  std::vector<float> squares = testing::gaussian(std::size_t(n), key + 3, 1e-3);
  for (float& v : squares) v *= v;
  return {.value = Stored::plain(side.gaussian({n}, key + 1, dtype)),
          .grad = Stored::plain(side.gaussian({n}, key + 4, dtype, 1e-2)),
          .moments = {Stored::plain(side.gaussian({n}, key + 2, dtype, 1e-3)), Stored::plain(side.from(squares, {n}, dtype))},
          .weight_decay = 1e-3 * double(key),
          .key = key};
}

// Of every second parameter: columns of a larger one, from and of a multiple of 8 or not.
Tensor places_of_part(Side& side, std::int64_t n, std::size_t i) {
  if (i % 2 == 0 || n < 100) return {};
  const std::int64_t columns = i % 4 == 1 ? 64 : 13;
  const CutPiece pieces[] = {{n / 3, 8 * std::int64_t(i), columns, 3 * columns}, {n - n / 3, 3 * n, n, n}, end_of_places};
  const auto* const words = reinterpret_cast<const std::int64_t*>(pieces);
  return side.raw(std::vector<std::int64_t>(words, words + 12), {3, 4});
}

Case update(std::vector<std::int64_t> counts, float skip, std::vector<DType> types) {
  return {
      format("adamw {} {} x {} skip {}", types.front(), counts.back(), counts.size(), skip), [=](Side& side) {
        std::vector<ops::AdamWParameter> all;
        for (std::size_t i = 0; i < counts.size(); ++i) {
          all.push_back(parameter(side, counts[i], types[i % types.size()], 10 * i));
          all.back().places = places_of_part(side, counts[i], i);
        }
        const ops::AdamWStep s{
            .learning_rate = 1e-3f, .bias_correction1 = 3.3f, .bias_correction2 = 10, .gradient_scale = 0.7f, .skip = skip, .updates = 5};
        ops::adamw(side.stream(), {.parameters = all, .step = step_of(side, s)});
        for (const auto& p : all)
          side.result("value", p.value.codes, same_bits()), side.result("m", p.moments.m.codes, same_bits()),
              side.result("v", p.moments.v.codes, same_bits());
      }};
}
struct Storages {
  Storage value, grad, m, v;
};
// Several parameters at once, several steps; every second one with other storages.
Case stored_update(std::vector<std::int64_t> counts, float skip, Storages a, Storages b) {
  return {format("adamw {} {} {} {} and others, {} x {} skip {}", name(a.value), name(a.grad), name(a.m), name(a.v), counts.back(),
                 counts.size(), skip),
          [=](Side& side) {
            std::vector<ops::AdamWParameter> all;
            for (std::size_t i = 0; i < counts.size(); ++i) {
              const Storages& s = i % 2 ? b : a;
              const Shape shape{counts[i]};
              const auto encoded = [&](Storage storage, std::uint64_t seed, double scale, bool square) {
                std::vector<float> x = testing::gaussian(std::size_t(counts[i]), 10 * i + seed, scale);
                if (square)
                  for (float& v : x) v *= v;
                Stored out{.codes = side.poisoned(shape, code_type(storage)), .scales = {}, .storage = storage};
                if (scales_tensor(storage) || scales_blocks(storage))
                  out.scales = side.poisoned(scales_shape(storage, counts[i]), scales_type(storage));
                ops::encode_stored(side.stream(), side.from(x, shape), out, square ? ops::Tiny::keep : ops::Tiny::flush);
                return out;
              };
              all.push_back({.value = encoded(s.value, 1, 0.02, false),
                             .grad = encoded(s.grad, 2, 1e-2, false),
                             .moments = {encoded(s.m, 3, 1e-3, false), encoded(s.v, 4, 1e-2, true)},
                             .weight_decay = 1e-3 * double(i),
                             .key = i,
                             .places = places_of_part(side, counts[i], i),
                             .gradient_amax = side.from({0}, {1})});
              ops::sum_of_squares(
                  side.stream(),
                  {.x = std::span(&all.back().grad, 1), .sums = side.raw(std::vector<double>{0}, {1}), .maxima = all.back().gradient_amax});
            }
            for (std::uint64_t t = 1; t <= 3; ++t)
              ops::adamw(side.stream(), {.parameters = all,
                                         .step = step_of(side, {.learning_rate = 1e-3f,
                                                                .bias_correction1 = 3.3f,
                                                                .bias_correction2 = 10,
                                                                .gradient_scale = 0.7f,
                                                                .skip = skip,
                                                                .updates = t})});
            for (const auto& p : all)
              for (const Stored* x : {&p.value, &p.moments.m, &p.moments.v}) {
                side.result(format("codes {}", name(x->storage)), x->codes, same_bits());
                if (x->scales) side.result(format("scales {}", name(x->storage)), x->scales, same_bits());
              }
          }};
}
// Values that BF16 cannot round up, and infinity.
Case extreme_update() {
  return {"adamw of extreme values", [=](Side& side) {
            const std::int64_t n = 64;
            std::vector<float> x = testing::gaussian(n, 1);
            for (std::int64_t i = 0; i < n; i += 3)
              x[std::size_t(i)] = std::vector<float>{3.4e38f, -3.39e38f, 0x1.fep127f, INFINITY, 1e-40f}[std::size_t(i / 3 % 5)];
            ops::AdamWParameter p = parameter(side, n, DType::bf16, 1);
            p.value = Stored::plain(side.from(x, {n}, DType::bf16));
            ops::adamw(side.stream(), {.parameters = std::span(&p, 1), .step = step_of(side, {.learning_rate = -1, .updates = 3})});
            side.result("value", p.value.codes, same_bits());
          }};
}

Case clipping(double squares, float loss, std::int64_t nonfinite) {
  return {format("clip {} loss {} nonfinite {}", squares, loss, nonfinite), [=](Side& side) {
            const Tensor step = step_of(side, {.learning_rate = 0.5f, .power1 = 0.5, .power2 = 0.25});
            ops::clip(side.stream(), {.sum_of_squares = side.raw(std::vector<double>{squares}, {1}),
                                      .step = step,
                                      .max_norm = 1.0f,
                                      .loss = side.from({loss}, {1}),
                                      .nonfinite = side.raw(std::vector<std::int64_t>{0, nonfinite}, {2})});
            side.result("step", words_of(step), same_bits());
          }};
}

// With both factors, and a scale that the next op moves.
Case unscaling(double squares, float skip) {
  return {format("clip and loss_scale, squares {} skip {}", squares, skip), [=](Side& side) {
            const Tensor step = step_of(side, {.learning_rate = 0.5f, .power1 = 0.5, .power2 = 0.25}),
                         state = side.raw(std::vector<float>{0x1p16f, 0, 0, 0}, {ops::loss_scale_floats});
            ops::clip(side.stream(), {.sum_of_squares = side.raw(std::vector<double>{squares}, {1}),
                                      .step = step,
                                      .max_norm = 1.0f,
                                      .gradient_factor = side.from({1.25f}, {1}),
                                      .loss_scale = state.rows(0, 1)});
            for (int i = 0; i < 5; ++i)
              ops::move_loss_scale(side.stream(),
                                   {.state = state, .skip = side.from({i == 3 ? skip : 0.0f}, {1}), .rule = {.growth_steps = 2}});
            side.result("step", words_of(step), same_bits()), side.result("loss scale", state, same_bits());
          }};
}

Case norms(std::vector<std::int64_t> counts, bool accumulate) {
  return {format("sum_of_squares of {} tensors, accumulate {}", counts.size(), accumulate), [=](Side& side) {
            std::vector<Stored> x;
            double values = 0;
            for (std::size_t i = 0; i < counts.size(); ++i)
              x.push_back(Stored::plain(side.gaussian({counts[i]}, 10 + i))), values += double(counts[i]);
            const std::int64_t n = std::int64_t(counts.size());
            const Tensor sums = side.raw(std::vector<double>(std::size_t(n), 2.0), {n}), total = side.raw(std::vector<double>{3.0}, {1});
            ops::sum_of_squares(side.stream(), {.x = x, .sums = sums, .total = total, .accumulate = accumulate});
            const double bound = 4 * values * values * 0x1p-53;
            side.result("sums", sums, within(bound)), side.result("total", total, within(bound));
          }};
}

// With `others` columns before and after those of the slots.
Case history(std::int64_t length, std::int64_t slots, float skip, ops::AmaxChoice choice, std::int64_t others = 0) {
  return {format("amax_history {} x {} skip {} choice {} beside {}", length, slots, skip, int(choice), others), [=](Side& side) {
            const std::int64_t columns = slots + 2 * others;
            std::vector<float> maxima = testing::gaussian(std::size_t(length * columns), 1, 3.0),
                               scales(std::size_t(slots * ops::scale_slot_floats), 2.0f);
            for (std::size_t i = 0; i < maxima.size(); ++i)
              maxima[i] = i % 11 == 0 ? 0 : i % 13 == 5 ? INFINITY : i % 17 == 3 ? NAN : std::fabs(maxima[i]);
            const Shape table{slots, ops::scale_slot_floats};
            std::vector<std::int32_t> places;  // those of some slots are neighbours, as of the matrices of a stack
            for (std::int64_t n = 0; n < slots; ++n)
              places.push_back(std::int32_t((n < 3 ? n : 3) * ops::scale_slot_floats + (n < 3 ? 0 : n - 3)));
            const Tensor all = side.from(maxima, {length, columns}), scale = side.from(scales, table), descale = side.from(scales, table);
            ops::advance_amax_history(side.stream(), {.history = all,
                                                      .first = others,
                                                      .scale = scale,
                                                      .descale = descale,
                                                      .places = side.raw(places, {slots}),
                                                      .format_max = side.from(std::vector<float>(std::size_t(slots), 448.0f), {slots}),
                                                      .skip = side.from({skip}, {1}),
                                                      .margin = 1,
                                                      .choice = choice});
            side.result("history", all, same_bits()), side.result("scale", scale, same_bits()),
                side.result("descale", descale, same_bits());
          }};
}

Case shared(std::int64_t slots, float skip) {
  return {
      format("shared_scale {} skip {}", slots, skip), [=](Side& side) {
        std::vector<float> maxima = testing::gaussian(std::size_t(slots), 1, 3.0);
        for (float& a : maxima) a = std::fabs(a);
        const std::vector<float> ones(std::size_t(slots * ops::scale_slot_floats), 1.0f);
        const Shape table{slots, ops::scale_slot_floats};
        const Tensor scale = side.from(ones, table), descale = side.from(ones, table);
        ops::update_shared_scale(
            side.stream(),
            {.amax = side.from(maxima, {slots}), .scale = scale, .descale = descale, .skip = side.from({skip}, {1}), .format_max = 448.0f});
        side.result("scale", scale, same_bits()), side.result("descale", descale, same_bits());
      }};
}

std::vector<Case> make() {
  std::vector<Case> cases;
  for (const std::int64_t n : {0, 1, 3, 1000, 100003})
    for (const float skip : {0.0f, 1.0f})
      cases.push_back(update({n}, skip, {DType::f32})), cases.push_back(update({n}, skip, {DType::bf16}));
  std::vector<std::int64_t> many;
  for (std::int64_t i = 0; i < 130; ++i) many.push_back(i % 7 == 3 ? 0 : i % 5 == 2 ? 20000 * i + 8 : 37 * i);
  cases.push_back(update(many, 0, {DType::bf16, DType::f32, DType::bf16})), cases.push_back(extreme_update());
  using enum Storage;
  const Storages wide{f32, e4m3, e4m3, f16}, narrow{f16, e4m3, e4m3, f16}, gradients{f32, e4m3, f32, f32},
      tensors{e4m3_tensor, e4m3_tensor, e4m3_tensor, e4m3_tensor}, expanded{bf16, bf16, e4m3_expanded, e4m3_expanded},
      root{bf16_nearest, f32, bf16, e4m3_root}, mixed{f16, bf16, f32, bf16};
  for (const std::int64_t n : {0, 1, 129, 4096, 100003})
    for (const float skip : {0.0f, 1.0f})
      cases.push_back(stored_update({n, n, n, n}, skip, wide, narrow)), cases.push_back(stored_update({n, n}, skip, tensors, expanded)),
          cases.push_back(stored_update({n, n}, skip, root, mixed)), cases.push_back(stored_update({n, n}, skip, gradients, wide));
  for (const auto& [a, b] : {std::pair{wide, narrow}, {expanded, tensors}}) cases.push_back(stored_update(many, 0, a, b));
  for (const double squares : {0.0, 0.25, 16.0, double(INFINITY)}) cases.push_back(clipping(squares, 1, 0));
  for (const double squares : {0x1p33, 0x1p28, double(NAN)})
    for (const float skip : {0.0f, 1.0f}) cases.push_back(unscaling(squares, skip));
  cases.push_back(clipping(1, NAN, 0)), cases.push_back(clipping(1, 1, 4));
  for (const bool accumulate : {false, true})
    cases.push_back(norms({1}, accumulate)), cases.push_back(norms(std::vector<std::int64_t>(300, 1000), accumulate)),
        cases.push_back(norms({0, 16384, 16385, 400000, 7}, accumulate));
  for (const float skip : {0.0f, 1.0f})
    for (const auto choice : {ops::AmaxChoice::max, ops::AmaxChoice::most_recent})
      cases.push_back(history(1, 5, skip, choice)), cases.push_back(history(2, 200, skip, choice)),
          cases.push_back(history(1024, 333, skip, choice)), cases.push_back(history(16, 70, skip, choice, 33));
  for (const std::int64_t slots : {1, 7, 1000}) cases.push_back(shared(slots, 0)), cases.push_back(shared(slots, 1));
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
