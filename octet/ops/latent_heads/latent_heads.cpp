#include "octet/ops/latent_heads/latent_heads.hpp"

#include "octet/ops/attention/documents.hpp"
#include "octet/ops/latent_heads/latent_heads.kernels.hpp"

namespace octet::ops {
namespace {

void check_parts(Stream& stream, const LatentArguments& a) {
  const QkvShape& s = a.shape.heads;
  check_qkv("latent heads", s, a.qkv);
  const std::int64_t r = a.shape.turned, n = a.shape.plain(), tokens = a.qkv.shape[0];
  check(s.kv_heads == s.heads && r > 0 && n >= 0 && r % 2 == 0 && n % 2 == 0 && s.value_dim() % 2 == 0,
        "latent heads: wanted as many key heads as query heads and even parts of them, got {} and {} heads, {} turned of {} columns, "
        "values of {}",
        s.heads, s.kv_heads, r, s.head_dim, s.value_dim());
  const auto has = [&](const ColumnsOf& c, std::int64_t columns) {
    return c.of.shape.rank == 2 && c.of.shape[0] == tokens && c.of.dtype == a.qkv.dtype && c.first >= 0 &&
           c.first + columns <= c.of.shape[1];
  };
  check(has(a.q, s.heads * s.head_dim) && has(a.k, r) && a.kv.shape == Shape{tokens, a.shape.expanded()} && a.kv.dtype == a.qkv.dtype,
        "latent heads: wanted {} columns of queries, {} of keys and values, and {} of shared keys, of {} tokens and {}; got {}, {} and {}",
        s.heads * s.head_dim, a.shape.expanded(), r, tokens, a.qkv.dtype, a.q.of.shape, a.kv.shape, a.k.of.shape);
  check_rope_table("latent heads", a.table, r, s.whole());
  check(!a.places || (a.places.shape == Shape{tokens} && a.places.dtype == DType::i32 && !a.document_starts),
        "latent heads: places must be i32 [{}] without document_starts, got {} {}", tokens, a.places.dtype, a.places.shape);
  check_document_starts("latent heads", stream, a.document_starts, tokens, s.sequence, s.part);
}

double bytes_of(const LatentArguments& a) {
  return double(a.qkv.bytes() + a.kv.bytes()) +
         double(a.qkv.shape[0] * (a.shape.heads.heads * a.shape.heads.head_dim + a.shape.turned)) * double(size_of(a.qkv.dtype));
}

void check_places(const Stream& stream, const LatentArguments& a) {
  if (!a.places || stream.device() != Device::cpu) return;
  const std::int64_t most = a.table.cos.shape[0];
  for (std::int64_t t = 0; t < a.places.count(); ++t) {
    const std::int32_t place = a.places.as<std::int32_t>()[t];
    check(place >= 0 && place < most, "latent heads: places[{}] is {}, and the table has places below {}", t, place, most);
  }
}

}  // namespace

void latent_heads_forward(Stream& stream, const LatentArguments& a) {
  check_parts(stream, a);
  check_places(stream, a);
  stream.count({.ops = 1, .bytes = bytes_of(a)});
  OCTET_LAUNCH(stream, latent_heads_forward, a);
}

void latent_heads_backward(Stream& stream, const LatentArguments& a) {
  check_parts(stream, a);
  check(!a.places, "latent heads: backward has no places");
  stream.count({.ops = 1, .bytes = bytes_of(a)});
  OCTET_LAUNCH(stream, latent_heads_backward, a);
}

}  // namespace octet::ops
