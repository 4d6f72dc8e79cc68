#include "octet/ops/stored/stored.hpp"

#include "octet/ops/stored/codec.math.hpp"
#include "octet/ops/stored/stored.kernels.hpp"

namespace octet::ops {
namespace {

void check_values(const char* who, const Stored& x, const Tensor& values) {
  check_stored(who, x);
  check(values.dtype == DType::f32 && values.shape == x.shape(), "{}: values must be f32 {}, got {} {}", who, x.shape(), values.dtype,
        values.shape);
}

// The lanes of one value in the host's memory.
struct OneLane {
  static float load(const float* p, std::int64_t i) { return p[i]; }
  static float load(const Bf16* p, std::int64_t i) { return to_float(p[i]); }
  static float load(const Fp16* p, std::int64_t i) { return to_float(p[i]); }
  static float load(const std::uint8_t* p, std::int64_t i) { return decode<E4M3>(p[i]); }
  template <class F>
  static float map(float x, const F& f) {
    return f(x);
  }
};

}  // namespace

void check_stored(const char* who, const Stored& s) {
  check(s.codes.dtype == code_type(s.storage), "{}: codes of {} must be {}, got {}", who, name(s.storage), code_type(s.storage),
        s.codes.dtype);
  const Shape wanted = scales_shape(s.storage, s.count());
  if (!scales_tensor(s.storage) && !scales_blocks(s.storage)) return;
  check(s.scales.shape == wanted && s.scales.dtype == scales_type(s.storage), "{}: scales of {} {} must be {} {}, got {} {}", who,
        name(s.storage), s.shape(), scales_type(s.storage), wanted, s.scales.dtype, s.scales.shape);
}

void decode_stored(Stream& stream, const Stored& x, const Tensor& values) {
  check_values("decode_stored", x, values);
  stream.count({.ops = 1, .bytes = double(x.bytes() + values.bytes())});
  if (x.count() == 0) return;
  OCTET_LAUNCH(stream, decode_stored, x, values);
}

void encode_stored(Stream& stream, const Tensor& values, const Stored& x, Tiny tiny) {
  check_values("encode_stored", x, values);
  const bool twice = scales_tensor(x.storage);
  stream.count({.ops = 1, .bytes = double(x.bytes()) + double(values.bytes()) * (twice ? 2 : 1)});
  if (x.count() == 0 && !twice) return;  // scalars of a tensor there are in any case
  const Scope scope(stream);
  const Tensor maximum = twice ? stream.zeros({1}, DType::f32, Lifetime::scratch, Category::workspace) : Tensor{};
  OCTET_LAUNCH(stream, encode_stored, {.values = values, .out = x, .tiny = tiny, .maximum = maximum});
}

float value_at(const Stored& s, std::int64_t i) {
  check(i >= 0 && i < s.count(), "value_at: element {} of {}", i, s.shape());
  const StoredView view = view_of(s);
  float value = 0;
  with_codec(s.storage, [&](auto codec) { value = codec.decode(OneLane{}, view, codec.stored(view, i / storage_block), i); });
  return value;
}

}  // namespace octet::ops
