#include "octet/train/step/upload.hpp"

namespace octet::train {

models::TokenBatch upload(Stream& stream, const data::Batch& batch, Region region) {
  const std::int64_t n = batch.rows * batch.length;
  const Tensor tokens = stream.empty({n}, DType::i32, region, Category::activations),
               targets = stream.empty({n}, DType::i32, region, Category::activations);
  octet::upload(stream, batch.inputs.data(), tokens), octet::upload(stream, batch.targets.data(), targets);
  if (!batch.document_mask) return {tokens, targets, batch.length};
  const Tensor starts = stream.empty({n}, DType::i32, region, Category::activations);
  octet::upload(stream, batch.document_starts.data(), starts);
  return {tokens, targets, batch.length, starts};
}

}  // namespace octet::train
