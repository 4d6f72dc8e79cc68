#include "octet/tensor/parameter.hpp"

#include <algorithm>
#include <vector>

namespace octet {

Cut unless_whole(Cut cut, std::int64_t here) { return cut.copies == 1 && cut.whole.count() == here ? Cut{} : cut; }

void set_values(Stream& stream, const Tensor& t, const float* host) {
  if (t.dtype == DType::f32) return upload(stream, host, t);
  check(t.dtype == DType::bf16, "set_values: wants f32 or bf16, got {}", t.dtype);
  constexpr std::int64_t most = std::int64_t(1) << 24;  // go through the host's memory at once
  const Tensor flat = t.reshaped({t.count()});
  std::vector<Bf16> rounded(std::size_t(std::min(most, t.count())));
  for (std::int64_t first = 0; first < t.count(); first += most) {
    const std::int64_t n = std::min(most, t.count() - first);
#ifdef _OPENMP
#pragma omp parallel for schedule(static)
#endif
    for (std::int64_t i = 0; i < n; ++i) rounded[std::size_t(i)] = to_bf16(host[first + i]);
    upload(stream, rounded.data(), flat.rows(first, n));
  }
}

void get_values(Stream& stream, const Tensor& t, float* host) {
  if (t.dtype == DType::f32) return download(stream, t, host);
  const HostCopy copy(stream, t);
  const auto convert = [&]<class T>() { std::transform(copy.as<T>(), copy.as<T>() + t.count(), host, [](T x) { return to_float(x); }); };
  if (t.dtype == DType::bf16) return convert.template operator()<Bf16>();
  if (t.dtype == DType::f16) return convert.template operator()<Fp16>();
  for (std::int64_t i = 0; i < t.count(); ++i) host[i] = value_at(copy.tensor(), i);
}

}  // namespace octet
