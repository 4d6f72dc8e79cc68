#include "octet/nn/head.hpp"

#include <algorithm>

#include "octet/ops/columns/columns.hpp"
#include "octet/ops/cross_entropy/cross_entropy.hpp"

namespace octet::nn {
namespace {

scaling::Site head_site(scaling::Site site) {
  site.head = true;
  return site;
}

}  // namespace

std::int64_t head_chunk(const Stream& stream, bool quantized) { return quantized || stream.apart_from_host() ? 4096 : 512; }

LanguageHead::LanguageHead(const std::string& path, std::int64_t width, std::int64_t padded_vocabulary, std::int64_t vocabulary,
                           scaling::Precision& precision, scaling::Site site, Partition& p)
    : partition_(p),
      vocabulary_(vocabulary),
      linear_(path, {.in = width, .out = own_part(p, padded_vocabulary).count, .cut = own_rows(p, {padded_vocabulary, width})}, precision,
              head_site(std::move(site))) {}

LanguageHead::LanguageHead(const std::string& path, Parameter& tied_weight, std::int64_t vocabulary, scaling::Precision& precision,
                           scaling::Site site, Partition& p)
    : partition_(p), vocabulary_(vocabulary), linear_(path, tied_weight, precision, head_site(std::move(site))) {}

// Of all columns of the logits [T, V / members]: f32 [members T, 3].
Tensor LanguageHead::statistics_of_all(Stream& stream, const Tensor& logits, const Tensor& targets) const {
  const std::int64_t n = logits.shape[0];
  const Tensor all = stream.empty({partition_.members() * n, 3}, DType::f32);
  const Tensor own = all.rows(partition_.member() * n, n);
  ops::logit_statistics(stream,
                        {.logits = logits, .targets = targets, .vocabulary = own_tokens(), .first = first_token(), .statistics = own});
  partition_.gather(stream, own, all);
  return all;
}

void LanguageHead::loss(Stream& stream, const Tensor& x, const Tensor& targets, const LossSums& sums, const scaling::Pass& pass,
                        const LossFactor& factor, const Tensor& dx) {
  const Scope scope(stream);
  const Tensor gathered = partition_.all_rows(stream, x), partial = dx ? partition_.all_rows(stream, dx) : Tensor{};
  partition_.gather(stream, x, gathered);
  loss_of_rows(stream, gathered, targets, sums, pass, factor, partial);
  if (dx) partition_.reduce(stream, partial, dx);
}

void LanguageHead::loss_of_rows(Stream& stream, const Tensor& x, const Tensor& targets, const LossSums& sums, const scaling::Pass& pass,
                                const LossFactor& factor, const Tensor& dx) {
  const bool train = bool(dx);
  // A chunk's operands for backward are used at once, so they are in scratch.
  const scaling::Pass chunk_pass{.kind = pass.kind, .keep = Lifetime::scratch, .count = pass.count, .measure_noise = pass.measure_noise};
  const std::int64_t chunk = head_chunk(stream, linear_.spec(Operand::activation, pass).quantizes());
  for (std::int64_t begin = 0; begin < x.shape[0]; begin += chunk) {
    const Scope scope(stream);
    const std::int64_t n = std::min(chunk, x.shape[0] - begin);
    const Tensor logits = stream.empty({n, linear_.out()}, x.dtype), losses = stream.empty({n}, DType::f32);
    Linear::Saved saved;
    const QTensor operands = quantized(stream, linear_, {.cols = train, .values = x.rows(begin, n)}, chunk_pass).codes;
    linear_.forward(stream, operands, logits, chunk_pass, train ? &saved : nullptr);
    const bool divides = partition_.divides();
    ops::cross_entropy(stream, {.logits = logits,
                                .targets = targets.rows(begin, n),
                                .vocabulary = own_tokens(),
                                .losses = losses,
                                .loss_sum = sums.sum,
                                .counted = sums.counted,
                                .gradient_scale = factor.constant,
                                .loss_scale = factor.loss_scale,
                                .gradient = train,
                                .first = first_token(),
                                .parts = divides ? statistics_of_all(stream, logits, targets.rows(begin, n)) : Tensor{}});
    if (train)
      linear_.backward(stream, quantized(stream, linear_, {.tensor = Operand::gradient, .values = logits}, chunk_pass, partition_), saved,
                       dx.rows(begin, n));
  }
  if (train) linear_.weight().parameter().gradient.done(stream);
}

void LanguageHead::logits(Stream& stream, const Tensor& x, const Tensor& logits, const scaling::Pass& pass) {
  const Scope scope(stream);
  const QTensor operands = quantized(stream, linear_, {.cols = false, .values = x}, pass).codes;
  if (!partition_.divides()) return linear_.forward(stream, operands, logits, pass, nullptr);
  const std::int64_t rows = x.shape[0], columns = linear_.out();
  const Tensor own = stream.empty({rows, columns}, logits.dtype), all = stream.empty({partition_.members() * rows, columns}, logits.dtype);
  linear_.forward(stream, operands, own, pass, nullptr);
  partition_.gather(stream, own, all);
  for (int m = 0; m < partition_.members(); ++m)
    ops::copy_columns(stream, {.from = all.rows(m * rows, rows), .to = logits, .to_column = m * columns, .columns = columns});
}

}  // namespace octet::nn
