#include "octet/cli/logits_file.hpp"

#include <cstring>

#include "octet/io/safetensors_file.hpp"
#include "octet/io/safetensors_writer.hpp"
#include "octet/trained/logits.hpp"

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
  trained::require_ids(tokens.ids, vocabulary);
  io::SafetensorsWriter writer(path, {{"logits", io::StoredDType::f32, {tokens.rows, tokens.length, vocabulary}},
                                      {"ids", io::StoredDType::i64, {tokens.rows, tokens.length}}});
  writer.append("ids", std::as_bytes(std::span(tokens.ids)));
  const std::vector<std::int32_t> ids(tokens.ids.begin(), tokens.ids.end());
  for (std::int64_t row = 0; row < tokens.rows; ++row) {
    const auto one = std::span(ids).subspan(std::size_t(row * tokens.length), std::size_t(tokens.length));
    writer.append("logits", io::from_f32(trained::logits_of(engine, one), io::StoredDType::f32));
  }
  writer.commit();
}

}  // namespace octet::cli
