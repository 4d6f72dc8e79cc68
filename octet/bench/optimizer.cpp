#include "octet/bench/subject.hpp"
#include "octet/ops/accumulate/accumulate.hpp"
#include "octet/ops/adamw/adamw.hpp"
#include "octet/ops/sum_of_squares/sum_of_squares.hpp"

namespace octet::bench {
namespace {

void measure_adamw(Subject& s, std::vector<Row>& rows, Shape shape, DType dtype) {
  const double bytes = 7.0 * double(shape.count()) * double(size_of(dtype));  // value and moments both ways, the gradient one
  add_memory_row(s, rows, {.group = "optimizer", .name = "adamw", .shape = to_text(shape), .precision = to_text(dtype), .amount = bytes},
                 [&](Stream& stream) -> Launch {
                   const auto values = [&] { return s.random.values(stream, shape, dtype); };
                   const auto zeros = [&] { return stream.zeros(shape, dtype); };
                   const Tensor state = stream.empty({ops::adamw_step_floats}, DType::f32);
                   const ops::AdamWStep step{.learning_rate = 1e-4f, .bias_correction1 = 10, .bias_correction2 = 20};
                   upload(stream, &step, state);
                   const ops::AdamWParameter p{.value = values(), .grad = values(), .moments = {zeros(), zeros()}};
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
                   const Stored stored{.codes = stream.zeros(shape, code_type(storage)),
                                       .scales = stream.zeros(scales, scales_type(storage)),
                                       .storage = storage};
                   const Tensor x = s.random.values(stream, shape, scratch), draws = stream.zeros({2}, DType::i64);
                   const std::int64_t second = 1;  // micro-batch: the first one does not read the codes
                   upload(stream, &second, draws.rows(ops::accumulate_part, 1));
                   return [&stream, x, stored, draws] { ops::accumulate(stream, {.x = x, .sum = stored, .draws = draws}); };
                 });
}

}  // namespace

void measure_optimizer(Subject& s, std::vector<Row>& rows) {
  const Shape weight{s.sites.mlp_in.out, s.sites.mlp_in.in};
  for (const DType dtype : {DType::f32, DType::bf16}) measure_adamw(s, rows, weight, dtype);
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
