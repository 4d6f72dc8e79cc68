#include "octet/train/run/config/corpus.hpp"

namespace octet::train {
namespace {

std::optional<data::Dataset> open_eval(const data::DataConfig& c, data::Verify verify) {
  if (c.eval_path.empty()) return std::nullopt;
  return std::optional<data::Dataset>(std::in_place, c.eval_path, verify, "data.eval_path");
}

data::Split split_of(const data::DataConfig& c, const data::Dataset& training, const std::optional<data::Dataset>& eval) {
  if (!eval) return data::split_documents(training, c.eval_fraction);
  return {{{0, training.token_count()}}, {{0, eval->token_count()}}};
}

}  // namespace

Corpus::Corpus(const data::DataConfig& c, const LoopConfig& loop, std::int64_t vocabulary)
    : dataset_(c.path, c.verify ? data::Verify::everything : data::Verify::header),
      eval_dataset_(open_eval(c, c.verify ? data::Verify::everything : data::Verify::header)),
      training_(dataset_, split_of(c, dataset_, eval_dataset_).train, c.sequence_length, "training", c.documents()),
      eval_tokens_(loop.eval_tokens) {
  data::require_vocabulary(dataset_, vocabulary);
  if (eval_dataset_) data::require_vocabulary(*eval_dataset_, vocabulary), data::require_same_tokenizer(dataset_, *eval_dataset_);
  if (c.eval_fraction > 0 || eval_dataset_)
    held_out_.emplace(eval_dataset_ ? *eval_dataset_ : dataset_, split_of(c, dataset_, eval_dataset_).held_out, c.sequence_length,
                      "held-out", c.documents());
}

std::optional<data::EvalBatches> Corpus::held_out(std::int64_t rows) const {
  if (!held_out_) return std::nullopt;
  return data::EvalBatches(*held_out_, rows, eval_tokens_);
}

}  // namespace octet::train
