#include "octet/nn/head.hpp"

#include <algorithm>

#include "octet/nn/gradient_accumulator.hpp"
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
                           scaling::Precision& precision, scaling::Site site, Partition& p, const Objective& objective)
    : partition_(p),
      objective_(objective),
      vocabulary_(vocabulary),
      linear_(path, {.in = width, .out = own_range(p, padded_vocabulary).count, .cut = own_rows(p, {padded_vocabulary, width})}, precision,
              head_site(std::move(site))) {}

LanguageHead::LanguageHead(const std::string& path, Parameter& tied_weight, std::int64_t vocabulary, scaling::Precision& precision,
                           scaling::Site site, Partition& p, const Objective& objective)
    : partition_(p), objective_(objective), vocabulary_(vocabulary), linear_(path, tied_weight, precision, head_site(std::move(site))) {}

// Of all columns of the logits [T, V / members]: f32 [members T, 3]; of one member empty.
Tensor LanguageHead::statistics_of_all(Stream& stream, const Tensor& logits, const Tensor& targets) const {
  return partition_.table_of_all(stream, {logits.shape[0], 3}, [&](const Tensor& own) {
    ops::logit_statistics(stream,
                          {.logits = logits, .targets = targets, .vocabulary = own_tokens(), .first = first_token(), .statistics = own});
  });
}

void LanguageHead::loss(Stream& stream, const Tensor& x, const Targets& targets, const LossSums& sums, const scaling::Pass& pass,
                        const LossFactor& factor, const Tensor& dx) {
  const Scope scope(stream);
  const Tensor gathered = partition_.all_rows(stream, x), partial = dx ? partition_.all_rows(stream, dx) : Tensor{};
  partition_.gather(stream, x, gathered);
  const bool training = bool(dx);
  objective_.run(stream, targets, sums, training, [&](const Objective::HeadPass& head) {
    pass_over(stream, head, gathered, targets.tokens, pass, factor, training && head.gradient ? partial : Tensor{});
  });
  if (dx) partition_.reduce(stream, partial, dx);
}

// Maxima and health are those of the first pass.
void LanguageHead::pass_over(Stream& stream, const Objective::HeadPass& head, const Tensor& x, const Tensor& targets,
                             const scaling::Pass& pass, const LossFactor& factor, const Tensor& dx) {
  const bool train = bool(dx);
  const scaling::Pass::Kind kind = head.again && pass.records() ? scaling::Pass::Kind::recompute : pass.kind;
  const Scope all_chunks(stream);
  GradientAccumulator sum(stream, linear_.weight().parameter(), Gradient::scratch_type(stream), train);
  // A chunk's operands for backward are used at once, so they are in scratch.
  const scaling::Pass gradient_pass{.kind = pass.kind, .keep = Lifetime::scratch, .count = pass.count, .measure_noise = pass.measure_noise};
  scaling::Pass chunk_pass = gradient_pass;
  chunk_pass.kind = kind;
  const std::int64_t chunk = head_chunk(stream, linear_.spec(Operand::activation, pass).quantizes());
  for (std::int64_t begin = 0; begin < x.shape[0]; begin += chunk) {
    const Scope scope(stream);
    const std::int64_t n = std::min(chunk, x.shape[0] - begin);
    const Tensor logits = stream.empty({n, linear_.out()}, x.dtype);
    const Tensor losses = head.losses ? head.losses.rows(begin, n) : stream.empty({n}, DType::f32);
    Linear::Saved saved;
    const QTensor operands = operands_of(quantized(stream, linear_, {.cols = train, .values = x.rows(begin, n)}, chunk_pass));
    linear_.forward(stream, operands, logits, chunk_pass, train ? &saved : nullptr);
    ops::cross_entropy(stream, {.logits = logits,
                                .targets = targets.rows(begin, n),
                                .vocabulary = own_tokens(),
                                .losses = losses,
                                .loss_sum = head.sums.sum,
                                .counted = head.sums.counted,
                                .gradient_scale = factor.constant,
                                .loss_scale = factor.loss_scale,
                                .weights = head.weights ? head.weights.rows(begin, n) : Tensor{},
                                .gradient = train,
                                .first = first_token(),
                                .parts = statistics_of_all(stream, logits, targets.rows(begin, n))});
    if (train)
      linear_.backward(stream, quantized(stream, linear_, {.tensor = Operand::gradient, .values = logits}, gradient_pass, partition_),
                       saved, dx.rows(begin, n));
  }
  sum.end(stream);
}

void LanguageHead::logits(Stream& stream, const Tensor& x, const Tensor& logits, const scaling::Pass& pass) {
  const Scope scope(stream);
  const QTensor operands = operands_of(quantized(stream, linear_, {.cols = false, .values = x}, pass));
  const Tensor own = partition_.own_columns(stream, logits);
  linear_.forward(stream, operands, own, pass, nullptr);
  partition_.gather_columns(stream, own, logits);
}

}  // namespace octet::nn
