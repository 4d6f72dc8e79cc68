#include "octet/trained/logits.hpp"

#include "octet/base/error.hpp"

namespace octet::trained {

void require_ids(std::span<const std::int64_t> ids, std::int64_t vocabulary) {
  for (const std::int64_t id : ids)
    if (id < 0 || id >= vocabulary)
      throw DataError(format("token id {} is none of the model's {} tokens; encode the text with the model's tokenizer", id, vocabulary));
}

std::vector<float> logits_of(train::Engine& e, std::span<const std::int32_t> ids) {
  const Scope scope(e.stream);
  const std::int64_t n = std::int64_t(ids.size()), vocabulary = e.model->shape().vocabulary, padded = e.model->shape().padded_vocabulary();
  const Tensor tokens = e.stream.empty({n}, DType::i32), logits = e.stream.empty({n, padded}, e.precision.activations());
  upload(e.stream, ids.data(), tokens);
  e.model->logits(e.stream, {.tokens = tokens, .sequence = n}, {}, n, logits);
  std::vector<float> all(std::size_t(n * padded)), out;
  get_values(e.stream, logits, all.data());
  for (std::int64_t t = 0; t < n; ++t) out.insert(out.end(), all.begin() + t * padded, all.begin() + t * padded + vocabulary);
  return out;
}

}  // namespace octet::trained
