#include "octet/ops/attention/documents.testing.hpp"
#include "octet/ops/rope/rope.hpp"
#include "tests/cuda/sinks.hpp"

// One formula in one order of operations, and a table made on the host: the same bits, also of the codes.

namespace octet::parity {
namespace {

Tensor starts_of(Side& side, std::int64_t tokens, std::int64_t sequence) {
  return side.raw(ops::random_document_starts(tokens, sequence, 6), {tokens});
}

std::vector<Case> make() {
  std::vector<Case> cases;
  const ops::QkvShape shapes[] = {{1, 1, 2, 1},   {2, 1, 6, 5},    {4, 2, 16, 33}, {14, 2, 64, 75},
                                  {4, 4, 96, 40}, {3, 1, 128, 50}, {2, 1, 256, 21}};
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const ops::QkvShape& heads : shapes)
      for (const std::int64_t sequences : {0, 3}) {
        const Shape shape = {sequences * heads.sequence, heads.columns()};
        const std::string name = format("{} {} heads of {}", dtype, heads.heads, heads.head_dim) + format(", {}", shape);
        cases.push_back({"rope_forward " + name, [=](Side& side) {
                           const auto table = ops::rope_table(side.stream(), heads.sequence, heads.head_dim, 10000);
                           const Tensor qkv = side.gaussian(shape, 1, dtype), packed = side.gaussian(shape, 1, dtype);
                           ops::rope_forward(side.stream(), {.qkv = qkv, .heads = heads, .table = table});
                           side.result("qkv", qkv, same_bits());
                           const Tensor starts = starts_of(side, shape[0], heads.sequence);
                           ops::rope_forward(side.stream(), {.qkv = packed, .heads = heads, .table = table, .document_starts = starts});
                           side.result("qkv, documents", packed, same_bits());
                         }});
        cases.push_back({"rope_backward " + name, [=](Side& side) {
                           const auto table = ops::rope_table(side.stream(), heads.sequence, heads.head_dim, 10000);
                           const Tensor dqkv = side.gaussian(shape, 1, dtype);
                           each_sink(side, shape, dtype, [&](Stream& stream, ops::Sink& y) {
                             ops::rope_backward(stream, {.dqkv = dqkv, .heads = heads, .table = table, .y = y});
                           });
                           each_sink(side, shape, dtype, [&](Stream& stream, ops::Sink& y) {
                             const Tensor starts = starts_of(side, shape[0], heads.sequence);
                             ops::rope_backward(stream, {.dqkv = dqkv, .heads = heads, .table = table, .y = y, .document_starts = starts});
                           });
                         }});
        cases.push_back({"rope_backward in place " + name, [=](Side& side) {
                           const auto table = ops::rope_table(side.stream(), heads.sequence, heads.head_dim, 10000);
                           const auto fill = [&](Stream& stream, ops::Sink& y) {
                             copy(stream, side.gaussian(shape, 1, dtype), y.plain);
                             ops::rope_backward(stream, {.dqkv = y.plain, .heads = heads, .table = table, .y = y});
                           };
                           each_sink(side, shape, dtype, fill, {{.keep_plain = true, .noise = true}, {.keep_plain = true, .count = false}});
                         }});
      }
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
