#include <cmath>
#include <vector>

#include "octet/ops/attention/documents.hpp"
#include "octet/ops/rope/rope.kernels.hpp"

namespace octet::ops {
namespace {

void check_table(const RopeTable& t, const QkvShape& s) { check_rope_table("rope", t, s.head_dim, s.whole()); }

void check_places(const Stream& stream, const RopeForward& a) {
  if (!a.places) return;
  const std::int64_t tokens = a.qkv.shape[0], most = a.table.cos.shape[0];
  check(a.places.shape == Shape{tokens} && a.places.dtype == DType::i32 && !a.document_starts,
        "rope: places must be i32 [{}] without document_starts, got {} {}", tokens, a.places.dtype, a.places.shape);
  if (stream.device() != Device::cpu) return;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const std::int32_t place = a.places.as<std::int32_t>()[t];
    check(place >= 0 && place < most, "rope: places[{}] is {}, and the table has places below {}", t, place, most);
  }
}

}  // namespace

void check_rope_table(const char* op, const RopeTable& t, std::int64_t head_dim, std::int64_t positions) {
  const bool sound = t.cos.shape.rank == 2 && t.cos.shape == t.sin.shape && t.cos.dtype == DType::f32 && t.sin.dtype == DType::f32;
  check(sound && head_dim % 2 == 0 && t.cos.shape[1] * 2 == head_dim && t.cos.shape[0] >= positions,
        "{}: the table must be f32 [at least {}, {}] twice, got {} {} and {} {}", op, positions, head_dim / 2, t.cos.shape, t.cos.dtype,
        t.sin.shape, t.sin.dtype);
}

double rope_frequency(std::int64_t head_dim, std::int64_t i, double theta, const std::optional<RopeScaling>& scaling) {
  if (scaling) return scaled_frequency(head_dim, i, theta, *scaling);
  return std::pow(theta, -2.0 * double(i) / double(head_dim));
}

RopeTable rope_table(Stream& stream, std::int64_t sequence, std::int64_t head_dim, double theta, const std::optional<RopeScaling>& scaling,
                     Region region) {
  check(head_dim > 0 && head_dim % 2 == 0, "rope_table: a head must have an even number of columns, got {}", head_dim);
  const std::int64_t half = head_dim / 2;
  RopeTable table{.cos = stream.empty({sequence, half}, DType::f32, region, Category::workspace),
                  .sin = stream.empty({sequence, half}, DType::f32, region, Category::workspace)};
  stream.count({.ops = 1, .bytes = 2.0 * double(table.cos.bytes())});
  if (stream.device() == Device::null) return table;
  const double amplitude = scaling ? rope_amplitude(*scaling) : 1;
  std::vector<float> cos(std::size_t(sequence * half)), sin(cos.size());
  for (std::int64_t i = 0; i < half; ++i) {
    const double frequency = rope_frequency(head_dim, i, theta, scaling);
    for (std::int64_t p = 0; p < sequence; ++p) {
      cos[std::size_t(p * half + i)] = float(amplitude * std::cos(double(p) * frequency));
      sin[std::size_t(p * half + i)] = float(amplitude * std::sin(double(p) * frequency));
    }
  }
  upload(stream, cos.data(), table.cos), upload(stream, sin.data(), table.sin);
  return table;
}

void rope_forward(Stream& stream, const RopeForward& a) {
  check_qkv("rope", a.heads, a.qkv);
  check_table(a.table, a.heads);
  check_document_starts("rope", stream, a.document_starts, a.qkv.shape[0], a.heads.sequence, a.heads.part);
  check_places(stream, a);
  stream.count({.ops = 1, .bytes = 2.0 * double(a.qkv.bytes()) * double(a.heads.value_column(0)) / double(a.heads.columns())});
  OCTET_LAUNCH(stream, rope_forward, a);
}

void rope_backward(Stream& stream, const RopeBackward& a) {
  check_qkv("rope", a.heads, a.dqkv);
  check_table(a.table, a.heads);
  check_document_starts("rope", stream, a.document_starts, a.dqkv.shape[0], a.heads.sequence, a.heads.part);
  check(a.y.shape == a.dqkv.shape && a.y.dtype == a.dqkv.dtype, "rope: the sink must be like dqkv {} {}, got {} {}", a.dqkv.shape,
        a.dqkv.dtype, a.y.shape, a.y.dtype);
  stream.count({.ops = 1, .bytes = 2.0 * double(a.dqkv.bytes())});
  OCTET_LAUNCH(stream, rope_backward, a);
}

}  // namespace octet::ops
