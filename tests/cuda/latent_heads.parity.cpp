#include "octet/ops/attention/documents.testing.hpp"
#include "octet/ops/latent_heads/latent_heads.hpp"
#include "tests/cuda/parity.hpp"

// Copies, and one formula in one order of operations with a table made on the host: the same bits.

namespace octet::parity {
namespace {

void run(Side& side, const ops::LatentHeads& shape, std::int64_t sequences, DType dtype, bool documents) {
  const ops::QkvShape& h = shape.heads;
  const std::int64_t T = sequences * h.sequence, queries = h.heads * h.head_dim, columns = queries + shape.turned;
  const Tensor first = side.gaussian({T, columns}, 1, dtype), kv = side.gaussian({T, shape.expanded()}, 2, dtype),
               qkv = side.poisoned({T, h.columns()}, dtype), dqkv = side.gaussian({T, h.columns()}, 3, dtype),
               dfirst = side.poisoned({T, columns}, dtype), dkv = side.poisoned({T, shape.expanded()}, dtype),
               starts = documents ? side.raw(ops::random_document_starts(T, h.sequence, 6), {T}) : Tensor{};
  const ops::RopeTable table = ops::rope_table(side.stream(), h.sequence, shape.turned, 10000);
  ops::latent_heads_forward(side.stream(), {{first}, kv, {first, queries}, qkv, shape, table, starts});
  ops::latent_heads_backward(side.stream(), {{dfirst}, dkv, {dfirst, queries}, dqkv, shape, table, starts});
  side.result("qkv", qkv, same_bits());
  side.result("dfirst", dfirst, same_bits());
  side.result("dkv", dkv, same_bits());
}

std::vector<Case> make() {
  std::vector<Case> cases;
  for (const ops::LatentHeads& shape : {ops::LatentHeads{{1, 1, 6, 3, {}, 2}, 2}, ops::LatentHeads{{4, 4, 192, 33, {}, 128}, 64},
                                        ops::LatentHeads{{3, 3, 24, 20, {}, 40}, 8, ops::RopePairs::halves}})
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
      for (const bool documents : {false, true})
        for (const std::int64_t sequences : {0, 3})
          cases.push_back({format("latent_heads {} {} heads of {}, {} sequences{}", dtype, shape.heads.heads, shape.heads.head_dim,
                                  sequences, documents ? ", documents" : ""),
                           [=](Side& side) { run(side, shape, sequences, dtype, documents); }});
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
