#include "octet/parallel/transfers.hpp"

#include "octet/ops/stored_sum/stored_sum.hpp"
#include "octet/tensor/stored_memory.hpp"

namespace octet::parallel {
namespace {

Stored values_of(const Tensor& x) { return flat(Stored::plain(x)); }

}  // namespace

Stored Transfers::codes_for(Stream& stream, const Tensor& x, Region region) const {
  if (wire_ == TensorWire::activations) return {};
  return empty_stored(stream, {x.count()}, Storage::e4m3, region, Category::workspace);
}

Transfers::Begun Transfers::begin_send(Stream& stream, const Tensor& x, const Stored& codes, const Tensor& beside, int to) {
  if (codes) ops::convert_stored(stream, values_of(x), codes);
  else if (!beside) return {.values = ranks_.begin_send(stream, x, to), .scales = {}, .beside = {}};
  Begun out;
  ranks_.together(stream, [&] {
    out.values = ranks_.begin_send(stream, codes ? codes.codes : x, to);
    if (codes) out.scales = ranks_.begin_send(stream, codes.scales, to);
    if (beside) out.beside = ranks_.begin_send(stream, beside, to);
  });
  return out;
}

void Transfers::finish_send(const Begun& begun) {
  for (const comm::BegunSend& part : {begun.values, begun.scales, begun.beside}) ranks_.finish_send(part);
}

void Transfers::send(Stream& stream, const Tensor& x, int to) {
  const Scope scope(stream);
  const Stored codes = codes_for(stream, x);
  if (!codes) return ranks_.send(stream, x, to);
  ops::convert_stored(stream, values_of(x), codes);
  ranks_.together(stream, [&] { ranks_.send(stream, codes.codes, to), ranks_.send(stream, codes.scales, to); });
}

void Transfers::receive(Stream& stream, const Tensor& x, int from, const Tensor& beside) {
  const Scope scope(stream);
  const Stored codes = codes_for(stream, x);
  if (!codes && !beside) return ranks_.receive(stream, x, from);
  ranks_.together(stream, [&] {
    ranks_.receive(stream, codes ? codes.codes : x, from);
    if (codes) ranks_.receive(stream, codes.scales, from);
    if (beside) ranks_.receive(stream, beside, from);
  });
  if (codes) ops::convert_stored(stream, codes, values_of(x));
}

}  // namespace octet::parallel
