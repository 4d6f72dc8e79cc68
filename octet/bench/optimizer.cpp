#include "octet/bench/subject.hpp"
#include "octet/ops/accumulate/accumulate.hpp"
#include "octet/ops/adamw/adamw.hpp"
#include "octet/ops/stored/stored.hpp"
#include "octet/ops/sum_of_squares/sum_of_squares.hpp"
#include "octet/tensor/stored_memory.hpp"

namespace octet::bench {
namespace {

/// The storages of one measurement.
struct States {
  const char* name;
  Storage value, grad, m, v;
};
// Plain states, then those of 8-bit gradients, of 8-bit moments also, and of FP16 values also.
constexpr States states[] = {{"f32", Storage::f32, Storage::f32, Storage::f32, Storage::f32},
                             {"bf16", Storage::bf16, Storage::bf16, Storage::bf16, Storage::bf16},
                             {"e4m3 gradients", Storage::f32, Storage::e4m3, Storage::f32, Storage::f32},
                             {"e4m3 + f16 moments", Storage::f32, Storage::e4m3, Storage::e4m3, Storage::f16},
                             {"f16 values", Storage::f16, Storage::e4m3, Storage::e4m3, Storage::f16},
                             {"expanded moments", Storage::f32, Storage::e4m3, Storage::e4m3_expanded, Storage::e4m3_expanded}};

double bytes_of(Storage s, std::int64_t count) {
  return double(count) * double(size_of(code_type(s))) + double(scales_shape(s, count).count()) * double(size_of(scales_type(s)));
}

void measure_adamw(Subject& s, std::vector<Row>& rows, Shape shape, const States& of) {
  const std::int64_t n = shape.count();  // value and moments both ways, the gradient one
  const double bytes = bytes_of(of.grad, n) + 2 * (bytes_of(of.value, n) + bytes_of(of.m, n) + bytes_of(of.v, n));
  add_memory_row(s, rows, {.group = "optimizer", .name = "adamw", .shape = to_text(shape), .precision = of.name, .amount = bytes},
                 [&](Stream& stream) -> Launch {
                   const auto values = [&](Storage storage) {
                     const Stored out = zero_stored(stream, shape, storage);
                     ops::encode_stored(stream, s.random.values(stream, shape, DType::f32), out);
                     return out;
                   };
                   const Tensor state = stream.empty({ops::adamw_step_floats}, DType::f32);
                   const ops::AdamWStep step{.learning_rate = 1e-4f, .bias_correction1 = 10, .bias_correction2 = 20};
                   upload(stream, &step, state);
                   const ops::AdamWParameter p{.value = values(of.value),
                                               .grad = values(of.grad),
                                               .moments = {zero_stored(stream, shape, of.m), zero_stored(stream, shape, of.v)},
                                               .gradient_amax = stream.empty({1}, DType::f32)};
                   ops::sum_of_squares(stream,
                                       {.x = std::span(&p.grad, 1), .sums = stream.empty({1}, DType::f64), .maxima = p.gradient_amax});
                   return [&stream, p, state] { ops::adamw(stream, {.parameters = std::span(&p, 1), .step = state}); };
                 });
}

// One micro-batch's gradient, in either type of scratch, added to 8-bit storage: read once, codes and scales both ways.
void measure_accumulate(Subject& s, std::vector<Row>& rows, Shape shape, DType scratch, Storage storage) {
  const Shape scales = scales_shape(storage, shape.count());
  const double sum = double(shape.count()) + double(scales.count()) * double(size_of(scales_type(storage)));
  add_memory_row(s, rows,
                 {.group = "optimizer",
                  .name = "accumulate",
                  .shape = to_text(shape),
                  .precision = format("{} += {}", storage, scratch),
                  .amount = double(shape.count()) * double(size_of(scratch)) + 2 * sum},
                 [&](Stream& stream) -> Launch {
                   const Stored stored = zero_stored(stream, shape, storage);
                   const Tensor x = s.random.values(stream, shape, scratch), draws = stream.zeros({2}, DType::i64);
                   const std::int64_t second = 1;  // micro-batch: the first one does not read the codes
                   upload(stream, &second, draws.rows(ops::accumulate_part, 1));
                   return [&stream, x, stored, draws] { ops::accumulate(stream, {.x = x, .sum = stored, .draws = draws}); };
                 });
}

}  // namespace

void measure_optimizer(Subject& s, std::vector<Row>& rows) {
  const Shape weight{s.sites.mlp_in.out, s.sites.mlp_in.in};
  for (const States& of : states) measure_adamw(s, rows, weight, of);
  for (const Storage storage : {Storage::e4m3, Storage::e4m3_tensor})
    for (const DType scratch : {DType::f32, DType::bf16}) measure_accumulate(s, rows, weight, scratch, storage);
  add_memory_row(s, rows,
                 {.group = "optimizer",
                  .name = "sum of squares",
                  .shape = to_text(weight),
                  .precision = "f32",
                  .amount = 4.0 * double(weight.count())},
                 [&](Stream& stream) -> Launch {
                   const Tensor x = s.random.values(stream, weight, DType::f32), sum = stream.zeros({1}, DType::f64);
                   return [&stream, x, sum] { ops::sum_of_squares(stream, x, sum); };
                 });
}

}  // namespace octet::bench
