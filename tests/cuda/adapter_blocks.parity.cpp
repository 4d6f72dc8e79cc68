#include "octet/ops/adapter_blocks/adapter_blocks.hpp"
#include "octet/ops/quantize/operand_values.hpp"
#include "octet/ops/quantize/quantize.hpp"
#include "tests/cuda/parity.hpp"

namespace octet::parity {
namespace {

struct Form {
  std::int64_t out, rank, rows;
  std::vector<ops::RowBlock> blocks;
};

std::vector<Case> make() {
  std::vector<Case> cases;
  for (const Form& f : {Form{6, 1, 6, {{0, 6}}}, Form{9, 3, 9, {{0, 4}, {4, 2}, {6, 3}}}, Form{3072, 16, 2560, {{0, 2048}, {2560, 512}}}}) {
    const Shape narrow{f.rows, f.rank}, wide{f.out, f.rank * std::int64_t(f.blocks.size())};
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
      cases.push_back({format("spread_blocks {} {}", dtype, wide), [=](Side& side) {
                         const Tensor from = side.gaussian(narrow, 1, dtype), to = side.poisoned(wide, dtype);
                         ops::spread_blocks(side.stream(), from, f.blocks, 0.75f, to);
                         side.result("to", to, same_bits());
                       }});
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const bool accumulate : {false, true})
        cases.push_back({format("collect_blocks {} {} {}", dtype, wide, accumulate), [=](Side& side) {
                           const Tensor from = side.gaussian(wide, 1, DType::f32), to = side.gaussian(narrow, 2, dtype);
                           ops::collect_blocks(side.stream(), from, f.blocks, 0.75f, accumulate, to);
                           side.result("to", to, same_bits());
                         }});
  }
  for (const ScaleBlock block : {ScaleBlock{}, ScaleBlock{1, 0}, ScaleBlock{1, 128}})
    cases.push_back({format("operand_values {}", block), [=](Side& side) {
                       const Tensor x = side.gaussian({256, 384}, 1, DType::bf16);
                       ops::QuantizeSpec spec;
                       spec.format = DType::e4m3, spec.rows = spec.cols = block;
                       ops::Sink sink = ops::make_sink(side.stream(), spec, {.shape = x.shape, .dtype = x.dtype, .cols = true});
                       ops::quantize(side.stream(), x, sink);
                       for (const Quantized& q : {sink.codes.rows, sink.codes.cols})
                         side.result("values", ops::operand_values(side.stream(), q, DType::bf16).codes, same_bits());
                     }});
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
