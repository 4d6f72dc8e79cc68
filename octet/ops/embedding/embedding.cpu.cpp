#include "octet/ops/embedding/embedding.kernels.hpp"
#include "octet/tensor/cpu/lanes.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {
namespace {

// The position of token t in its document.
template <class Args>
std::int64_t position_of(const Args& a, std::int64_t t, std::int64_t length) {
  const std::int64_t rows = ops::rows_here(a.part, length);
  return a.part.place(t % rows, rows) - (a.document_starts ? a.document_starts.template as<std::int32_t>()[t] : 0);
}

// row[c] += dy[c].
template <class T>
OCTET_HD void add_row(float* row, const T* dy, std::int64_t cols) {
  Lane{}.each(cols, [&](auto at) { Lane{}.store(row, at, Lane{}.load(row, at) + Lane{}.load(dy, at)); });
}

}  // namespace

void embedding_forward(const ops::EmbeddingForward& a) {
  dispatch<float, Bf16, Fp16, E4M3>(a.table.dtype, "embedding table", [&]<class Table>() {
    dispatch<float, Bf16, Fp16>(a.out.dtype, "embedding", [&]<class T>() {
      const std::int64_t cols = a.table.shape[1], length = a.positions ? a.positions.shape[0] : 1;
      const float* const positions = a.positions.f32();
      const float factor = a.descale ? *a.descale.f32() : 1.0f;
      for_each(a.tokens.count(), cols * 8, [&](std::int64_t t) {
        const std::int64_t id = a.tokens.as<std::int32_t>()[t] - a.rows.first;
        T* const out = a.out.as<T>() + t * cols;
        if (id < 0 || id >= a.table.shape[0]) return void(__builtin_memset(out, 0, std::size_t(cols) * sizeof(T)));
        const Table* const row = a.table.as<Table>() + id * cols;
        if (positions == nullptr) {
          Lane{}.each(cols, [&](auto at) { Lane{}.store(out, at, Lane{}.load(row, at) * factor); });
        } else {
          const float* const position = positions + (a.places ? a.places.as<std::int32_t>()[t] : position_of(a, t, length)) * cols;
          Lane{}.each(cols, [&](auto at) { Lane{}.store(out, at, Lane{}.load(row, at) * factor + Lane{}.load(position, at)); });
        }
      });
    });
  });
}

// A job is a range of columns over all tokens, since two tokens may share a row.
void embedding_backward(const ops::EmbeddingBackward& a, const Tensor&) {
  constexpr std::int64_t job_cols = 64;  // 256 bytes of a row: a few cache lines at once
  dispatch<float, Bf16, Fp16>(a.dy.dtype, "embedding", [&]<class T>() {
    const std::int64_t rows = a.tokens.count(), cols = a.dtable.shape[1], length = a.dpositions ? a.dpositions.shape[0] : 1;
    float* const dpositions = a.dpositions.f32();
    for_each(ceil_div(cols, job_cols), rows * job_cols * 8, [&](std::int64_t job) {
      const std::int64_t col = job * job_cols, n = cols - col < job_cols ? cols - col : job_cols;
      for (std::int64_t t = 0; t < rows; ++t) {
        const T* const dy = a.dy.as<T>() + t * cols + col;
        const std::int64_t id = a.tokens.as<std::int32_t>()[t] - a.rows.first;
        if (id < 0 || id >= a.dtable.shape[0]) continue;
        add_row(a.dtable.f32() + id * cols + col, dy, n);
        if (dpositions != nullptr) add_row(dpositions + position_of(a, t, length) * cols + col, dy, n);
      }
    });
  });
}

}  // namespace octet::cpu::OCTET_ISA
