#include <algorithm>

#include "octet/train/layout/constraint_parts.hpp"

namespace octet::train::constraints {
namespace {

// A size of a GEMM of 8-bit codes on one rank: its name, and the number.
struct LocalSize {
  const char* name = nullptr;
  std::int64_t size = 0;
};

// The first that is not a multiple of 16.
LocalSize odd_size(const Layout& l, const Subject& s) {
  const std::int64_t keys = std::max<std::int64_t>(1, s.shape.kv_heads / l.tensor) * s.shape.head_dim;
  for (const LocalSize& of : {LocalSize{"hidden columns", s.shape.hidden / l.tensor},
                              {"query columns", s.shape.heads * s.shape.head_dim / l.tensor},
                              {"key columns", keys},
                              {"tokens of a micro-batch", l.micro_batch * s.sequence / (l.tensor * l.context)}})
    if (of.size % 16 != 0) return of;
  return {};
}

}  // namespace

Constraints of_steps() {
  return {
      {always, data, "Sequences of a step are a multiple of micro-batch x data.",
       [](const Layout& l, const Subject& s) { return s.sequences % (l.micro_batch * l.sequence_groups()) == 0; },
       [](const Layout& l, const Subject& s) {
         return format("{} sequences per step are not a multiple of micro-batch {} x data {}; change train.batch or train.accumulate",
                       s.sequences, l.micro_batch, l.sequence_groups());
       }},
      {planned, micro_batch, "With 8-bit operands, columns and tokens of one rank are multiples of 16.",
       [](const Layout& l, const Subject& s) { return odd_size(l, s).name == nullptr; },
       [](const Layout& l, const Subject& s) {
         return format("{} {} of one GPU are not a multiple of 16, as 8-bit GEMMs need", odd_size(l, s).size, odd_size(l, s).name);
       }},
  };
}

}  // namespace octet::train::constraints
