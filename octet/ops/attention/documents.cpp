#include "octet/ops/attention/documents.hpp"

namespace octet::ops {

void check_document_starts(const char* op, const Stream& stream, const Tensor& starts, std::int64_t tokens, std::int64_t sequence,
                           const SequencePart& part) {
  if (!starts) return;
  check(starts.shape == Shape{tokens} && starts.dtype == DType::i32, "{}: document_starts must be i32 [{}], got {} {}", op, tokens,
        starts.dtype, starts.shape);
  if (stream.device() != Device::cpu) return;
  const auto* const at = starts.as<std::int32_t>();
  for (std::int64_t t = 0; t < tokens; ++t) {
    const std::int64_t row = t % sequence, place = part.place(row, sequence), least = row == 0 ? 0 : at[t - 1];
    check(at[t] >= least && at[t] <= place, "{}: document_starts[{}] must be from {} to {}, got {}", op, t, least, place, at[t]);
  }
}

}  // namespace octet::ops
