#include "octet/io/tensor_view.hpp"

#include <cstring>

#include "octet/base/check.hpp"
#include "octet/numerics/formats.hpp"

namespace octet::io {
namespace {

/// out[i] = to_float of the i-th T.
template <class T>
void decode_all(std::span<const std::byte> bytes, std::span<float> out) {
#ifdef _OPENMP
#pragma omp parallel for schedule(static) if (out.size() >= std::size_t(1) << 16)
#endif
  for (std::size_t i = 0; i < out.size(); ++i) {
    T x;
    std::memcpy(&x, bytes.data() + i * sizeof(T), sizeof(T));
    out[i] = to_float(x);
  }
}

template <class T, class Encode>
std::vector<std::byte> encode_all(std::span<const float> values, Encode encode) {
  std::vector<std::byte> out(values.size() * sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T x = encode(values[i]);
    std::memcpy(out.data() + i * sizeof(T), &x, sizeof(T));
  }
  return out;
}

}  // namespace

void to_f32(const TensorView& tensor, std::span<float> out) {
  check(std::int64_t(out.size()) == tensor.count(), "to_f32 {}: out must have {} elements, got {}", tensor.name, tensor.count(),
        out.size());
  switch (tensor.dtype) {
    case StoredDType::f32:
      if (!out.empty()) std::memcpy(out.data(), tensor.bytes.data(), tensor.bytes.size());
      return;
    case StoredDType::bf16: return decode_all<Bf16>(tensor.bytes, out);
    case StoredDType::f16: return decode_all<Fp16>(tensor.bytes, out);
    default:
      throw DataError(format("tensor \"{}\" must be F32, BF16 or F16 to be read as numbers, it is {}; convert the file first",
                             printable(tensor.name), tensor.dtype));
  }
}

std::vector<float> to_f32(const TensorView& tensor) {
  std::vector<float> out(std::size_t(tensor.count()));
  to_f32(tensor, out);
  return out;
}

std::vector<std::byte> from_f32(std::span<const float> values, StoredDType dtype) {
  switch (dtype) {
    case StoredDType::f32: return encode_all<float>(values, [](float x) { return x; });
    case StoredDType::bf16: return encode_all<Bf16>(values, [](float x) { return to_bf16(x); });
    case StoredDType::f16: return encode_all<Fp16>(values, [](float x) { return to_fp16(x); });
    default: throw ContractError(format("from_f32 writes F32, BF16 or F16, not {}", dtype));
  }
}

}  // namespace octet::io
