#pragma once

#include "octet/tensor/sequence_part.hpp"
#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// The place of a table's rows in a larger one, of which others have the other rows.
struct TableRows {
  std::int64_t first = 0;  // the token of row 0
  std::int64_t all = 0;    // rows of the larger table; 0: there are no others
};

/// Rows of each sequence here: of two segments of a part, which are equally far from both ends, or all of `length`.
OCTET_HD constexpr std::int64_t rows_here(const SequencePart& p, std::int64_t length) {
  return p ? 2 * (p.whole - p.first - p.second) : length;
}

/// out[t, c] = table[tokens[t], c] (+ positions[p, c]), p = t mod L - start with start = document_starts[t], or 0 if that is empty; or
/// p = places[t] if that is given. Of a part of each sequence, that of each row in the whole sequence takes the place of t mod L.
/// table: f32 or bf16 [V, D], or f16 or e4m3 with the factor of all codes, descale, f32 [1]; tokens: i32 [T], the sequences of a batch one
/// after the other; positions: f32 [L, D] with L the length of a sequence (the first L rows of a longer table: Tensor::rows), or empty;
/// document_starts: i32 [T] (attention/documents.hpp), or empty; places: i32 [T], or empty; out: [T, D] f32, bf16 or f16. A token whose row
/// others have is 0, with no position added.
struct EmbeddingForward {
  Tensor table, tokens;
  Tensor out;
  Tensor positions = {}, document_starts = {};
  Tensor descale = {};
  TableRows rows = {};
  Tensor places = {};
  SequencePart part = {};
};
/// Throws ContractError on other shapes and, on the CPU, for a token outside [0, V), naming its place and value; on a GPU the row of such a
/// token is NaN, which the step will find.
void embedding_forward(Stream&, const EmbeddingForward&);

/// dtable[tokens[t], c] += dy[t, c],   dpositions[p, c] += dy[t, c],   p as above without places.
/// dy: [T, D] f32, bf16 or f16; dtable: f32 [V, D] and dpositions: f32 [L, D] or empty, both added to. Every element is summed in the
/// order of t: the same bits for any number of threads. On a GPU a token outside [0, V) adds nothing.
struct EmbeddingBackward {
  Tensor dy, tokens;
  Tensor dtable;
  Tensor dpositions = {}, document_starts = {};
  TableRows rows = {};  // a token whose row others have adds nothing
  SequencePart part = {};
};
/// Throws as embedding_forward does. Workspace on a GPU: i32 [2 + 2 V + 4 T] from scratch, and with positions
/// beside document_starts, rows or a part [2 + 2 L + 5 T] more.
void embedding_backward(Stream&, const EmbeddingBackward&);

}  // namespace octet::ops
