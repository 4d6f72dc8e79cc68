#include "octet/nn/head.hpp"

#include <algorithm>

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
                           scaling::Precision& precision, scaling::Site site)
    : vocabulary_(vocabulary), linear_(path, {.in = width, .out = padded_vocabulary}, precision, head_site(std::move(site))) {}

LanguageHead::LanguageHead(const std::string& path, Parameter& tied_weight, std::int64_t vocabulary, scaling::Precision& precision,
                           scaling::Site site)
    : vocabulary_(vocabulary), linear_(path, tied_weight, precision, head_site(std::move(site))) {}

void LanguageHead::loss(Stream& stream, const Tensor& x, const Tensor& targets, const LossSums& sums, const scaling::Pass& pass,
                        const LossFactor& factor, const Tensor& dx) {
  const bool train = bool(dx);
  // A chunk's operands for backward are used at once, so they are in scratch.
  const scaling::Pass chunk_pass{.kind = pass.kind, .keep = Lifetime::scratch, .count = pass.count, .measure_noise = pass.measure_noise};
  const std::int64_t chunk = head_chunk(stream, linear_.quantizes(pass));
  for (std::int64_t begin = 0; begin < x.shape[0]; begin += chunk) {
    const Scope scope(stream);
    const std::int64_t n = std::min(chunk, x.shape[0] - begin);
    const Tensor logits = stream.empty({n, padded_vocabulary()}, x.dtype), losses = stream.empty({n}, DType::f32);
    Linear::Saved saved;
    linear_.forward(stream, linear_.quantize_input(stream, x.rows(begin, n), chunk_pass, train), logits, chunk_pass,
                    train ? &saved : nullptr);
    ops::cross_entropy(stream, {.logits = logits,
                                .targets = targets.rows(begin, n),
                                .vocabulary = vocabulary_,
                                .losses = losses,
                                .loss_sum = sums.sum,
                                .counted = sums.counted,
                                .gradient_scale = factor.constant,
                                .loss_scale = factor.loss_scale,
                                .gradient = train});
    if (train) linear_.backward_part(stream, linear_.quantize_gradient(stream, logits, chunk_pass), saved, dx.rows(begin, n));
  }
  if (train) linear_.backward_done(stream);
}

void LanguageHead::logits(Stream& stream, const Tensor& x, const Tensor& logits, const scaling::Pass& pass) {
  const Scope scope(stream);
  linear_.forward(stream, linear_.quantize_input(stream, x, pass, false), logits, pass, nullptr);
}

}  // namespace octet::nn
