#include "octet/ops/attention/documents.hpp"
#include "octet/ops/embedding/embedding.kernels.hpp"

namespace octet::ops {
namespace {

// Shapes of either direction: `rows` is out or dy, `table` and `positions` the values or their gradients.
void check_shapes(const Tensor& table, const Tensor& positions, const Tensor& tokens, const Tensor& rows) {
  check(table.shape.rank == 2, "embedding: the table must be [V, D], got {}", table.shape);
  check(tokens.shape.rank == 1 && tokens.dtype == DType::i32, "embedding: tokens must be i32 [T], got {} {}", tokens.dtype, tokens.shape);
  check(rows.shape == Shape{tokens.shape[0], table.shape[1]}, "embedding: rows must be [{}, {}], got {}", tokens.shape[0], table.shape[1],
        rows.shape);
  check(!positions ||
            (positions.shape.rank == 2 && positions.shape[0] > 0 && positions.shape[1] == table.shape[1] && positions.dtype == DType::f32),
        "embedding: positions must be f32 [L, {}] with L > 0, got {} {}", table.shape[1], positions.dtype, positions.shape);
}

// Only positions use them.
template <class Args>
void check_places_of_rows(const Stream& stream, const Args& a, const Tensor& positions) {
  if (!positions) return;
  check(!a.part || a.part.whole == positions.shape[0], "embedding: a part of {} tokens with {} positions", a.part.whole,
        positions.shape[0]);
  check_document_starts("embedding", stream, a.document_starts, a.tokens.count(), rows_here(a.part, positions.shape[0]), a.part);
}

// Only positions use them.
void check_places(const Stream& stream, const EmbeddingForward& a) {
  if (!a.places || !a.positions) return;
  check(a.places.shape == a.tokens.shape && a.places.dtype == DType::i32 && !a.document_starts && !a.part,
        "embedding: places must be i32 {} without document_starts or a part, got {} {}", a.tokens.shape, a.places.dtype, a.places.shape);
  if (stream.device() != Device::cpu) return;
  for (std::int64_t t = 0; t < a.tokens.count(); ++t) {
    const std::int32_t place = a.places.as<std::int32_t>()[t];
    check(place >= 0 && place < a.positions.shape[0], "embedding: places[{}] is {}, and there are {} positions", t, place,
          a.positions.shape[0]);
  }
}

// The loader has checked the ids; an op must not write outside its tensors even so. On a GPU the kernel sees to that.
void check_ids(const Stream& stream, const Tensor& tokens, std::int64_t rows, const TableRows& place) {
  check(place.all == 0 ? place.first == 0 : place.first >= 0 && place.first + rows <= place.all,
        "embedding: rows {} to {} are not within a table of {}", place.first, place.first + rows, place.all);
  if (stream.device() != Device::cpu) return;
  const std::int64_t vocabulary = place.all > 0 ? place.all : rows;
  const std::int32_t* const id = tokens.as<std::int32_t>();
  for (std::int64_t t = 0; t < tokens.count(); ++t)
    check(id[t] >= 0 && id[t] < vocabulary, "embedding: token {} at position {} is outside [0, {})", id[t], t, vocabulary);
}

}  // namespace

void embedding_forward(Stream& stream, const EmbeddingForward& a) {
  check_shapes(a.table, a.positions, a.tokens, a.out);
  const bool codes = a.table.dtype == DType::f16 || a.table.dtype == DType::e4m3;
  check(codes || a.table.dtype == DType::f32 || a.table.dtype == DType::bf16, "embedding: the table must be f32, bf16, f16 or e4m3, got {}",
        a.table.dtype);
  check(bool(a.descale) == codes && (!codes || (a.descale.dtype == DType::f32 && a.descale.shape == Shape{1})),
        "embedding: a table of {} wants {} descale, got {} {}", a.table.dtype, codes ? "an f32 [1]" : "no", a.descale.dtype,
        a.descale.shape);
  check_places_of_rows(stream, a, a.positions);
  check_places(stream, a);
  stream.count({.ops = 1, .bytes = (a.positions ? 3.0 : 2.0) * double(a.out.bytes())});
  check_ids(stream, a.tokens, a.table.shape[0], a.rows);
  OCTET_LAUNCH(stream, embedding_forward, a);
}

void embedding_backward(Stream& stream, const EmbeddingBackward& a) {
  check_shapes(a.dtable, a.dpositions, a.tokens, a.dy);
  check_places_of_rows(stream, a, a.dpositions);
  check(a.dtable.dtype == DType::f32, "embedding: dtable must be f32, got {}", a.dtable.dtype);
  stream.count({.ops = 1, .bytes = double(a.dy.bytes()) + (a.dpositions ? 16.0 : 8.0) * double(a.dy.count())});
  check_ids(stream, a.tokens, a.dtable.shape[0], a.rows);
  const Scope scope(stream);
  Tensor lists;
  if (stream.target().device == Device::cuda) {
    const std::int64_t tokens = a.tokens.count(), of_tokens = embedding_list_words(a.dtable.shape[0], tokens);
    const std::int64_t of_positions = lists_positions(a) ? tokens + embedding_list_words(a.dpositions.shape[0], tokens) : 0;
    lists = stream.empty({of_tokens + of_positions}, DType::i32, Lifetime::scratch, Category::workspace);
  }
  OCTET_LAUNCH(stream, embedding_backward, a, lists);
}

}  // namespace octet::ops
