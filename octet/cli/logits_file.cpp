#include "octet/cli/logits_file.hpp"

#include <algorithm>
#include <cstring>

#include "octet/io/safetensors_file.hpp"
#include "octet/io/safetensors_writer.hpp"

namespace octet::cli {
namespace {

template <class T>
std::vector<std::int64_t> integers(std::span<const std::byte> bytes) {
  std::vector<std::int64_t> out(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < out.size(); ++i) {
    T x;
    std::memcpy(&x, bytes.data() + i * sizeof(T), sizeof(T));
    out[i] = x;
  }
  return out;
}

/// Logits of one row, [length, vocabulary].
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

}  // namespace

TokenRows read_token_rows(const std::string& path) {
  const auto file = io::SafetensorsFile::open(path);
  const auto ids = file.find("ids");
  const bool integer = ids && (ids->dtype == io::StoredDType::i32 || ids->dtype == io::StoredDType::i64);
  if (!integer || ids->shape.size() != 2 || ids->count() == 0)
    throw DataError(format("{}: must hold a tensor \"ids\", I32 or I64 [rows, length], of one token id or more", printable(path)));
  return {ids->shape[0], ids->shape[1],
          ids->dtype == io::StoredDType::i32 ? integers<std::int32_t>(ids->bytes) : integers<std::int64_t>(ids->bytes)};
}

void write_logits(train::Engine& engine, const TokenRows& tokens, const std::string& path) {
  const std::int64_t vocabulary = engine.model->shape().vocabulary;
  for (const std::int64_t id : tokens.ids)
    if (id < 0 || id >= vocabulary)
      throw DataError(format("token id {} is none of the model's {} tokens; encode the text with the model's tokenizer", id, vocabulary));
  io::SafetensorsWriter writer(path, {{"logits", io::StoredDType::f32, {tokens.rows, tokens.length, vocabulary}},
                                      {"ids", io::StoredDType::i64, {tokens.rows, tokens.length}}});
  writer.append("ids", std::as_bytes(std::span(tokens.ids)));
  const std::vector<std::int32_t> ids(tokens.ids.begin(), tokens.ids.end());
  for (std::int64_t row = 0; row < tokens.rows; ++row) {
    const auto one = std::span(ids).subspan(std::size_t(row * tokens.length), std::size_t(tokens.length));
    writer.append("logits", io::from_f32(logits_of(engine, one), io::StoredDType::f32));
  }
  writer.commit();
}

}  // namespace octet::cli
