#include "octet/train/run/config/corpus.hpp"

namespace octet::train {
namespace {

data::Verify verify_of(const data::DataConfig& c) { return c.verify ? data::Verify::everything : data::Verify::header; }

std::deque<data::Dataset> open_mixed(const std::vector<data::Share>& shares, data::Verify verify) {
  std::deque<data::Dataset> out;
  for (const data::Share& s : shares) out.emplace_back(s.path, verify, "data.mix");
  return out;
}

std::optional<data::Dataset> open_eval(const data::DataConfig& c, data::Verify verify) {
  if (c.eval_path.empty()) return std::nullopt;
  return std::optional<data::Dataset>(std::in_place, c.eval_path, verify, "data.eval_path");
}

data::Split split_of(const data::DataConfig& c, const data::Dataset& training, const std::optional<data::Dataset>& eval) {
  if (!eval) return data::split_documents(training, c.eval_fraction);
  return {{{0, training.token_count()}}, {{0, eval->token_count()}}};
}

// The training part of data.path, and all of the others.
data::Mixture training_of(const data::DataConfig& c, const data::Windows& first, const std::vector<data::Share>& shares,
                          const std::deque<data::Dataset>& mixed) {
  std::vector<data::Mixture::Text> texts{{first, data::whole_share}};
  for (std::size_t i = 0; i < mixed.size(); ++i) {
    const data::TokenRanges all{{0, mixed[i].token_count()}};
    texts.push_back({data::Windows(mixed[i], all, c.sequence_length, "training", c.documents()), shares[i].millionths});
    texts.front().millionths -= shares[i].millionths;
  }
  return data::Mixture(std::move(texts));
}

}  // namespace

Corpus::Corpus(const data::DataConfig& c, const LoopConfig& loop, std::int64_t vocabulary)
    : dataset_(c.path, verify_of(c)),
      shares_(data::parse_shares(c.mix)),
      mixed_(open_mixed(shares_, verify_of(c))),
      eval_dataset_(open_eval(c, verify_of(c))),
      training_(training_of(c, {dataset_, split_of(c, dataset_, eval_dataset_).train, c.sequence_length, "training", c.documents()},
                            shares_, mixed_)),
      eval_tokens_(loop.eval_tokens) {
  data::require_vocabulary(dataset_, vocabulary);
  for (const data::Dataset& d : mixed_) data::require_vocabulary(d, vocabulary), data::require_same_tokenizer(dataset_, d);
  if (eval_dataset_) data::require_vocabulary(*eval_dataset_, vocabulary), data::require_same_tokenizer(dataset_, *eval_dataset_);
  if (c.eval_fraction > 0 || eval_dataset_)
    held_out_.emplace(eval_dataset_ ? *eval_dataset_ : dataset_, split_of(c, dataset_, eval_dataset_).held_out, c.sequence_length,
                      "held-out", c.documents());
}

data::Checksum Corpus::fingerprint() const {
  if (mixed_.empty()) return dataset_.fingerprint();
  std::string all = to_text(dataset_.fingerprint());
  for (std::size_t i = 0; i < mixed_.size(); ++i) all += format(" {} {}", to_text(mixed_[i].fingerprint()), shares_[i].millionths);
  return data::checksum_of(all);
}

std::optional<data::EvalBatches> Corpus::held_out(std::int64_t rows) const {
  if (!held_out_) return std::nullopt;
  return data::EvalBatches(*held_out_, rows, eval_tokens_);
}

}  // namespace octet::train
