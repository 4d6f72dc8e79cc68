#pragma once

#include "octet/numerics/formats.hpp"
#include "octet/ops/latent_heads/latent_heads.hpp"
#include "octet/ops/rope/rope.math.hpp"

namespace octet::ops {

/// One token of the op: pointers to its rows. A unit of a GPU's thread is two columns: of a pair that is turned, or two neighbours that are
/// copied. The types are those of values; the inputs' one is const.
template <class Part, class Fused>
struct LatentRow {
  Part *q, *kv, *k;
  Fused* qkv;
  const float *cos, *sin;  // of the token's position
  unsigned heads, plain, turned, values;
  RopePairs pairs;

  OCTET_HD unsigned width() const { return plain + turned; }
  OCTET_HD unsigned of_queries() const { return heads * width() / 2; }
  OCTET_HD unsigned of_expanded() const { return heads * (plain + values) / 2; }
  /// Units of forward, each of which writes two columns of qkv, and of backward, which also writes those of the shared keys.
  OCTET_HD unsigned forward_units() const { return 2 * of_queries() + heads * values / 2; }
  OCTET_HD unsigned backward_units() const { return of_queries() + of_expanded() + turned / 2; }

  /// The parts of head h: in the inputs, or in forward's output. Its last `turned` columns begin at plain.
  OCTET_HD Part* query(unsigned h) const { return q + h * width(); }
  OCTET_HD Part* expanded(unsigned h) const { return kv + h * (plain + values); }
  OCTET_HD Fused* fused_query(unsigned h) const { return qkv + h * width(); }
  OCTET_HD Fused* fused_key(unsigned h) const { return qkv + (heads + h) * width(); }
  OCTET_HD Fused* fused_value(unsigned h) const { return qkv + 2 * heads * width() + h * values; }

  /// y = pair i of x, turned.
  template <bool opposite, class X, class Y>
  OCTET_HD void turn(unsigned i, const X* x, Y* y) const {
    const RopePair p = rope_pair(pairs, turned / 2, i);
    const Turned<float> t = turned_pair<opposite>(number(x[p.first]), number(x[p.second]), cos[p.angle], sin[p.angle]);
    put(y + p.first, t.first), put(y + p.second, t.second);
  }
  /// Pair i of the shared keys' gradient.
  OCTET_HD void shared_keys(unsigned i) const {
    const RopePair p = rope_pair(pairs, turned / 2, i);
    float first = 0, second = 0;
    for (unsigned h = 0; h < heads; ++h) {
      const Fused* const key = fused_key(h) + plain;
      first += number(key[p.first]), second += number(key[p.second]);
    }
    const Turned<float> t = turned_pair<true>(first, second, cos[p.angle], sin[p.angle]);
    put(k + p.first, t.first), put(k + p.second, t.second);
  }

  OCTET_HD void forward(unsigned u) const {
    const unsigned per_head = width() / 2, head = u / per_head;
    if (head < heads) return part_of_head<false>(u % per_head, query(head), query(head) + plain, fused_query(head));
    if (head < 2 * heads) return part_of_head<false>(u % per_head, expanded(head - heads), k, fused_key(head - heads));
    const unsigned i = u - 2 * of_queries(), h = i / (values / 2), at = i % (values / 2) * 2;
    copy_two(expanded(h) + plain + at, fused_value(h) + at);
  }

  OCTET_HD void backward(unsigned u) const {
    if (u < of_queries()) {
      const unsigned per_head = width() / 2, h = u / per_head;
      part_of_head<true>(u % per_head, fused_query(h), fused_query(h) + plain, query(h));
    } else if (u < of_queries() + of_expanded()) {
      const unsigned columns = plain + values, i = (u - of_queries()) * 2, h = i / columns, at = i % columns;
      copy_two(at < plain ? fused_key(h) + at : fused_value(h) + at - plain, kv + i);
    } else {
      shared_keys(u - of_queries() - of_expanded());
    }
  }

 private:
  // Two columns of a head: copied, or a pair of `last` that is turned into the columns behind them.
  template <bool opposite, class X, class Y>
  OCTET_HD void part_of_head(unsigned i, const X* first, const X* last, Y* y) const {
    if (2 * i < plain) copy_two(first + 2 * i, y + 2 * i);
    else turn<opposite>(i - plain / 2, last, y + plain);
  }

  template <class X, class Y>
  OCTET_HD static void copy_two(const X* x, Y* y) {
    y[0] = x[0], y[1] = x[1];
  }
  OCTET_HD static float number(float x) { return x; }
  template <class T>
  OCTET_HD static float number(T x) {
    return to_float(x);
  }
  template <class T>
  OCTET_HD static void put(T* y, float x) {
    *y = from_float<T>(x);
  }
};

/// The op: its matrices, and the row of each token.
template <class Part, class Fused>
struct LatentRows {
  LatentRow<Part, Fused> first;                // of token 0, with the angles of position 0
  std::int64_t q_row, kv_row, k_row, qkv_row;  // columns of the matrices
  const std::int32_t *starts, *places;
  unsigned sequence;
  SequencePart part;

  OCTET_HD LatentRow<Part, Fused> row(unsigned t) const {
    const std::int64_t start = starts != nullptr ? starts[t] : 0;
    const std::int64_t place = places != nullptr ? places[t] : part.place(t % sequence, sequence) - start;
    const std::int64_t angles = place * (first.turned / 2);
    LatentRow<Part, Fused> out = first;
    out.q += std::int64_t(t) * q_row, out.kv += std::int64_t(t) * kv_row, out.k += std::int64_t(t) * k_row,
        out.qkv += std::int64_t(t) * qkv_row;
    out.cos += angles, out.sin += angles;
    return out;
  }
};

template <class Part, class Fused>
LatentRows<Part, Fused> latent_rows(const LatentArguments& a) {
  const QkvShape& s = a.shape.heads;
  return {.first = {.q = a.q.of.as<Part>() + a.q.first,
                    .kv = a.kv.as<Part>(),
                    .k = a.k.of.as<Part>() + a.k.first,
                    .qkv = a.qkv.as<Fused>(),
                    .cos = a.table.cos.f32(),
                    .sin = a.table.sin.f32(),
                    .heads = unsigned(s.heads),
                    .plain = unsigned(a.shape.plain()),
                    .turned = unsigned(a.shape.turned),
                    .values = unsigned(s.value_dim()),
                    .pairs = a.shape.pairs},
          .q_row = a.q.of.shape[1],
          .kv_row = a.kv.shape[1],
          .k_row = a.k.of.shape[1],
          .qkv_row = a.qkv.shape[1],
          .starts = a.document_starts.as<std::int32_t>(),
          .places = a.places.as<std::int32_t>(),
          .sequence = unsigned(s.sequence),
          .part = s.part};
}

}  // namespace octet::ops
