#include "octet/ops/rope/rope_codes.hpp"

#include <algorithm>

#include "octet/ops/rope/rope_codes.kernels.hpp"

namespace octet::ops {
namespace {

bool in_one_pass(const Stream& stream, const RopeForward& a, const ColumnGroups& groups) {
  const bool measured = std::ranges::any_of(groups, [](const ColumnGroup& g) { return g.spec.health != nullptr; });
  return stream.device() == Device::cuda && a.qkv.dtype == DType::bf16 && a.heads.head_dim % 16 == 0 && !measured;
}

}  // namespace

void rope_codes(Stream& stream, const RopeCodes& a) {
#ifdef OCTET_HAS_CUDA
  if (in_one_pass(stream, a.rope, a.groups)) {
    stream.count({.ops = 2, .bytes = double(a.rope.qkv.bytes() + a.codes.bytes())});
    if (a.codes.count() > 0) cuda::rope_codes(stream.queue(), a);
    return;
  }
#endif
  rope_forward(stream, a.rope);
  encode_columns(stream, a.rope.qkv, a.groups, a.codes);
}

void rope_maxima(Stream& stream, const RopeForward& a, const ColumnGroups& groups, const Tensor& maxima) {
#ifdef OCTET_HAS_CUDA
  if (in_one_pass(stream, a, groups)) {
    stream.count({.ops = 2, .bytes = 2.0 * double(a.qkv.bytes())});
    clear(stream, maxima);
    if (a.qkv.count() > 0) cuda::rope_maxima(stream.queue(), a, maxima);
    return;
  }
#endif
  rope_forward(stream, a);
  column_maxima(stream, a.qkv, groups, maxima);
}

}  // namespace octet::ops
