#include "octet/ops/latent_heads/latent_heads.kernels.hpp"
#include "octet/ops/latent_heads/latent_heads.math.hpp"
#include "octet/tensor/cpu/lanes.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {

void latent_heads_forward(const ops::LatentArguments& a) {
  dispatch<float, Bf16, Fp16>(a.qkv.dtype, "latent heads", [&]<class T>() {
    const auto rows = ops::latent_rows<const T, T>(a);
    for_each(a.qkv.shape[0], a.qkv.shape[1] * 8, [&](std::int64_t t) {
      const auto row = rows.row(unsigned(t));
      for (unsigned u = 0; u < row.forward_units(); ++u) row.forward(u);
    });
  });
}

void latent_heads_backward(const ops::LatentArguments& a) {
  dispatch<float, Bf16, Fp16>(a.qkv.dtype, "latent heads", [&]<class T>() {
    const auto rows = ops::latent_rows<T, const T>(a);
    for_each(a.qkv.shape[0], a.qkv.shape[1] * 8, [&](std::int64_t t) {
      const auto row = rows.row(unsigned(t));
      for (unsigned u = 0; u < row.backward_units(); ++u) row.backward(u);
    });
  });
}

}  // namespace octet::cpu::OCTET_ISA
