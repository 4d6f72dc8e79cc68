#include "octet/ops/key_cache/key_cache.cuh"
#include "octet/ops/key_cache/key_cache.math.hpp"
#include "octet/tensor/cuda/early.cuh"
#include "octet/tensor/cuda/lanes.cuh"

namespace octet::cuda {
namespace {

// A warp for a key or value head of a token. grid: Hkv, T, keys and values.
template <class T, class Row>
__global__ void store_keys_kernel(Sizes s, Places at, bool read_back, T* qkv, Row* keys, Row* values, float* key_descales,
                                  float* value_descales) {
  let_later_work_begin();
  wait_for_earlier_work();
  const int head = blockIdx.x, token = blockIdx.y, lane = threadIdx.x, sequence = at.sequence[token];
  if (sequence < 0) return;
  const bool of_values = blockIdx.z == 1;
  const int d = of_values ? s.dv : s.d, first = of_values ? (s.heads + s.kv_heads) * s.d : s.heads * s.d;
  T* const x = qkv + std::int64_t(token) * s.columns + first + head * d;
  const std::int64_t row = s.first_row(sequence, head) + at.place[token];
  Row* const to = (of_values ? values : keys) + row * d;
  if constexpr (std::is_same_v<Row, E4M3>) {
    float most = 0;
    for (int c = lane; c < d; c += 32) most = octet::larger(octet::magnitude(cuda::load<1>(x, c).v[0]), most);
    const BlockScale<float> scale = ops::key_scale(warp_max(most));
    if (lane == 0) (of_values ? value_descales : key_descales)[row] = scale.descale;
    std::uint8_t* const codes = reinterpret_cast<std::uint8_t*>(to);
    for (int c = lane; c < d; c += 32) {
      codes[c] = encode<E4M3>(cuda::load<1>(x, c).v[0] * scale.scale);
      if (read_back) cuda::store(x, c, Pack<1>::all(decode<E4M3>(codes[c]) * scale.descale));
    }
  } else {
    for (int c = lane; c < d; c += 32) to[c] = x[c];
  }
}

}  // namespace

void store_keys(Queue queue, const ops::StoreKeys& a) {
  if (a.qkv.shape[0] == 0) return;
  require_limits(a.qkv, a.heads);
  with_types(a.qkv, a.to, [&]<class T, class Row>() {
    const Blocks blocks{dim3(unsigned(a.heads.kv_heads), unsigned(a.qkv.shape[0]), 2), 32};
    launch_early("store_keys_kernel", store_keys_kernel<T, Row>, blocks, queue, sizes_of(a.heads, a.to), places_of(a.at), a.read_back,
                 a.qkv.as<T>(), a.to.keys.as<Row>(), a.to.values.as<Row>(), a.to.key_descales.f32(), a.to.value_descales.f32());
  });
}

}  // namespace octet::cuda
