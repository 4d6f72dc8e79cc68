#include "octet/nn/dropout_draws.hpp"

#include "octet/ops/dropout/dropout.hpp"

namespace octet::nn {

void DropoutDraws::allocate(Stream& stream, std::uint64_t seed) {
  numbers_ = stream.zeros({ops::dropout_numbers}, DType::i64, Lifetime::run, Category::workspace);
  upload(stream, &seed, numbers_.rows(ops::dropout_seed, 1));
}

void DropoutDraws::set_sequence(std::int64_t whole, int member, int members) {
  sequence_ = whole / members, part_ = SequencePart::of_member(whole, member, members);
}

void DropoutDraws::begin_micro_batch(Stream& stream, const Tensor& updates, std::int64_t number) {
  if (!numbers_) return;
  upload(stream, &number, numbers_.rows(ops::dropout_batch, 1));
  if (updates) copy(stream, updates, numbers_.rows(ops::dropout_update, 1));
}

}  // namespace octet::nn
