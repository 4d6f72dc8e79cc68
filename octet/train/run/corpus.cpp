#include "octet/train/run/corpus.hpp"

namespace octet::train {

Corpus::Corpus(const data::DataConfig& c, const LoopConfig& loop, std::int64_t vocabulary)
    : dataset_(c.path, c.verify ? data::Verify::everything : data::Verify::header),
      training_(dataset_, data::split_documents(dataset_, c.eval_fraction).train, c.sequence_length, "training"),
      eval_tokens_(loop.eval_tokens) {
  data::require_vocabulary(dataset_, vocabulary);
  if (c.eval_fraction > 0)
    held_out_.emplace(dataset_, data::split_documents(dataset_, c.eval_fraction).held_out, c.sequence_length, "held-out");
}

std::optional<data::EvalBatches> Corpus::held_out(std::int64_t rows) const {
  if (!held_out_) return std::nullopt;
  return data::EvalBatches(*held_out_, rows, eval_tokens_);
}

}  // namespace octet::train
