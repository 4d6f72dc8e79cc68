#include "octet/ops/attention/qkv.hpp"

namespace octet::ops {

void check_qkv(const char* op, const QkvShape& s, const Tensor& qkv) {
  check(s.heads > 0 && s.kv_heads > 0 && s.head_dim > 0 && s.value_width >= 0 && s.sequence > 0 && s.heads % s.kv_heads == 0,
        "{}: wanted H a positive multiple of Hkv, d, dv and S positive; got H = {}, Hkv = {}, d = {}, dv = {}, S = {}", op, s.heads,
        s.kv_heads, s.head_dim, s.value_dim(), s.sequence);
  check(is_activation(qkv.dtype), "{}: qkv must be f32, bf16 or f16, got {}", op, qkv.dtype);
  check(qkv.shape.rank == 2 && qkv.shape[1] == s.columns() && qkv.shape[0] % s.sequence == 0, "{}: qkv must be [n * {}, {}], got {}", op,
        s.sequence, s.columns(), qkv.shape);
  const std::int64_t segment = s.sequence / 2;
  check(!s.part || (s.sequence % 2 == 0 && s.part.first >= 0 && s.part.second >= s.part.first + segment &&
                    s.part.second + segment <= s.part.whole),
        "{}: segments of {} tokens from {} and from {} on are no part of a sequence of {}", op, segment, s.part.first, s.part.second,
        s.part.whole);
}

}  // namespace octet::ops
