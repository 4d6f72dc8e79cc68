#include "octet/ops/latent_heads/latent_heads.kernels.hpp"
#include "octet/ops/latent_heads/latent_heads.math.hpp"
#include "octet/tensor/cuda/check.cuh"

// A thread has a unit of a token: two columns, so threads side by side read and write 4 or 8 neighbouring bytes each.

namespace octet::cuda {
namespace {

constexpr int threads = 256;

template <class T>
__global__ void forward_kernel(unsigned units, ops::LatentRows<const T, T> rows) {
  const unsigned u = blockIdx.y * threads + threadIdx.x;
  if (u < units) rows.row(blockIdx.x).forward(u);
}

template <class T>
__global__ void backward_kernel(unsigned units, ops::LatentRows<T, const T> rows) {
  const unsigned u = blockIdx.y * threads + threadIdx.x;
  if (u < units) rows.row(blockIdx.x).backward(u);
}

dim3 grid_of(const Tensor& qkv, std::int64_t units) { return dim3(unsigned(qkv.shape[0]), unsigned(ceil_div(units, threads))); }

}  // namespace

void latent_heads_forward(Queue queue, const ops::LatentArguments& a) {
  if (a.qkv.shape[0] == 0) return;
  dispatch<float, Bf16, Fp16>(a.qkv.dtype, "latent heads", [&]<class T>() {
    const auto rows = ops::latent_rows<const T, T>(a);
    const unsigned units = rows.first.forward_units();
    forward_kernel<T><<<grid_of(a.qkv, units), threads, 0, queue>>>(units, rows);
  });
  launched("latent heads forward");
}

void latent_heads_backward(Queue queue, const ops::LatentArguments& a) {
  if (a.qkv.shape[0] == 0) return;
  dispatch<float, Bf16, Fp16>(a.qkv.dtype, "latent heads", [&]<class T>() {
    const auto rows = ops::latent_rows<T, const T>(a);
    const unsigned units = rows.first.backward_units();
    backward_kernel<T><<<grid_of(a.qkv, units), threads, 0, queue>>>(units, rows);
  });
  launched("latent heads backward");
}

}  // namespace octet::cuda
