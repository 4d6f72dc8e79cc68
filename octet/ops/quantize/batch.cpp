#include "octet/ops/quantize/batch.hpp"

#include "octet/ops/quantize/quantize.kernels.hpp"
#include "octet/ops/quantize/stack.hpp"

namespace octet::ops {

void QuantizeBatch::add(const Stored& x, Sink& sink) {
  const bool waits = stream_.device() == Device::cuda && !x.scales && x.storage == Storage::f32 && sink.dtype == DType::f32 &&
                     sink.spec.quantizes() && !is_stack(sink.spec);
  if (!waits) return quantize(stream_, x, sink);
  check(x.shape() == sink.shape, "quantize: wants {} of f32, got {}", sink.shape, x.shape());
  count_quantized(stream_, x.codes, sink);
  waiting_.push_back({x.codes, sink});
}

void QuantizeBatch::run() {
  if (waiting_.empty()) return;
  OCTET_RUN_CUDA(quantize_batch, stream_.queue(), waiting_);
  waiting_.clear();
}

}  // namespace octet::ops
