#include "octet/ops/latent_heads/latent_heads.kernels.hpp"
#include "octet/ops/latent_heads/latent_heads.math.hpp"
#include "octet/tensor/cpu/lanes.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {
namespace {

template <class X, class Y>
void copy_values(unsigned n, const X* x, Y* y) {
  __builtin_memcpy(y, x, n * sizeof(Y));
}

template <class Row>
void forward_row(const Row& row) {
  for (unsigned h = 0; h < row.heads; ++h) {
    copy_values(row.plain, row.query(h), row.fused_query(h));
    copy_values(row.plain, row.expanded(h), row.fused_key(h));
    copy_values(row.values, row.expanded(h) + row.plain, row.fused_value(h));
    for (unsigned i = 0; i < row.turned / 2; ++i) {
      row.template turn<false>(i, row.query(h) + row.plain, row.fused_query(h) + row.plain);
      row.template turn<false>(i, row.k, row.fused_key(h) + row.plain);
    }
  }
}

template <class Row>
void backward_row(const Row& row) {
  for (unsigned h = 0; h < row.heads; ++h) {
    copy_values(row.plain, row.fused_query(h), row.query(h));
    copy_values(row.plain, row.fused_key(h), row.expanded(h));
    copy_values(row.values, row.fused_value(h), row.expanded(h) + row.plain);
    for (unsigned i = 0; i < row.turned / 2; ++i) row.template turn<true>(i, row.fused_query(h) + row.plain, row.query(h) + row.plain);
  }
  for (unsigned i = 0; i < row.turned / 2; ++i) row.shared_keys(i);
}

}  // namespace

void latent_heads_forward(const ops::LatentArguments& a) {
  dispatch<float, Bf16, Fp16>(a.qkv.dtype, "latent heads", [&]<class T>() {
    const auto rows = ops::latent_rows<const T, T>(a);
    for_each(a.qkv.shape[0], a.qkv.shape[1] * 8, [&](std::int64_t t) { forward_row(rows.row(unsigned(t))); });
  });
}

void latent_heads_backward(const ops::LatentArguments& a) {
  dispatch<float, Bf16, Fp16>(a.qkv.dtype, "latent heads", [&]<class T>() {
    const auto rows = ops::latent_rows<T, const T>(a);
    for_each(a.qkv.shape[0], a.qkv.shape[1] * 8, [&](std::int64_t t) { backward_row(rows.row(unsigned(t))); });
  });
}

}  // namespace octet::cpu::OCTET_ISA
