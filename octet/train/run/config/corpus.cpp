#include "octet/train/run/config/corpus.hpp"

#include "octet/base/log.hpp"
#include "octet/data/pair_rows.hpp"

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

std::int64_t pairs_of(const data::Dataset& d) { return d.has_pairs() ? std::int64_t(d.document_count() / 2) : 0; }

void require_same_kind(const data::Dataset& training, const data::Dataset& other) {
  if (training.has_pairs() == other.has_pairs()) return;
  const auto kind = [](const data::Dataset& d) { return d.has_pairs() ? "pairs of answers" : "text"; };
  throw ConfigError(format("{}: '{}' has {}, and {} '{}' has {}; a run learns from one kind", other.key(), printable(other.folder()),
                           kind(other), training.key(), printable(training.folder()), kind(training)));
}

// The training part of data.path, and all of the others.
data::Mixture training_of(const data::DataConfig& c, const data::Dataset& first, const data::TokenRanges& part,
                          const std::vector<data::Share>& shares, const std::deque<data::Dataset>& mixed) {
  std::vector<data::Mixture::Text> texts{{data::samples_of(first, part, c.sequence_length, "training", c.documents()), data::whole_share}};
  std::int64_t pairs = pairs_of(first);
  for (std::size_t i = 0; i < mixed.size(); ++i) {
    require_same_kind(first, mixed[i]);
    const data::TokenRanges all{{0, mixed[i].token_count()}};
    texts.push_back({data::samples_of(mixed[i], all, c.sequence_length, "training", c.documents(), pairs), shares[i].millionths});
    texts.front().millionths -= shares[i].millionths, pairs += pairs_of(mixed[i]);
  }
  return data::Mixture(std::move(texts));
}

void tell_left_out(const data::Samples& samples, const char* part, std::int64_t length) {
  const auto* const pairs = dynamic_cast<const data::PairRows*>(&samples);
  if (pairs != nullptr && pairs->too_long() > 0)
    log::warn("{} of {} {} pairs are left out: both answers with their question need more than data.sequence_length = {} tokens",
              grouped(pairs->too_long()), grouped(pairs->too_long() + pairs->pairs()), part, length);
}

}  // namespace

Corpus::Corpus(const data::DataConfig& c, const LoopConfig& loop, std::int64_t vocabulary)
    : dataset_(c.path, verify_of(c)),
      shares_(data::parse_shares(c.mix)),
      mixed_(open_mixed(shares_, verify_of(c))),
      eval_dataset_(open_eval(c, verify_of(c))),
      training_(training_of(c, dataset_, split_of(c, dataset_, eval_dataset_).train, shares_, mixed_)),
      eval_tokens_(loop.eval_tokens) {
  const auto require_ids = [&](const data::Dataset& d) { data::require_vocabulary(d, vocabulary, "model.vocabulary"); };
  require_ids(dataset_);
  for (const data::Dataset& d : mixed_) require_ids(d), data::require_same_tokenizer(dataset_, d);
  if (eval_dataset_) require_ids(*eval_dataset_), data::require_same_tokenizer(dataset_, *eval_dataset_);
  if (eval_dataset_) require_same_kind(dataset_, *eval_dataset_);
  if (c.eval_fraction > 0 || eval_dataset_)
    held_out_ = data::samples_of(eval_dataset_ ? *eval_dataset_ : dataset_, split_of(c, dataset_, eval_dataset_).held_out,
                                 c.sequence_length, "held-out", c.documents(), eval_dataset_ ? pairs() - pairs_of(*eval_dataset_) : 0);
  for (const data::Mixture::Text& t : training_.texts()) tell_left_out(*t.samples, "training", c.sequence_length);
  if (held_out_) tell_left_out(*held_out_, "held-out", c.sequence_length);
  if (held_out_) data::require_targets(*held_out(1), eval_dataset_ ? *eval_dataset_ : dataset_, "held-out");
}

std::vector<const data::Dataset*> Corpus::datasets() const {
  std::vector<const data::Dataset*> out{&dataset_};
  for (const data::Dataset& d : mixed_) out.push_back(&d);
  if (eval_dataset_) out.push_back(&*eval_dataset_);
  return out;
}

std::int64_t Corpus::pairs() const {
  std::int64_t out = 0;
  for (const data::Dataset* d : datasets()) out += pairs_of(*d);
  return out;
}

std::vector<data::EvalBatches> Corpus::all_pairs(std::int64_t rows) const {
  std::vector<data::EvalBatches> out;
  for (const data::Mixture::Text& t : training_.texts()) out.emplace_back(t.samples, rows, 0);
  if (held_out_) out.emplace_back(held_out_, rows, 0);
  return out;
}

data::Checksum Corpus::fingerprint_of_pairs() const {
  std::string all;
  for (const data::Dataset* d : datasets()) all += to_text(d->fingerprint());
  return data::checksum_of(all);
}

data::Checksum Corpus::fingerprint() const {
  if (mixed_.empty()) return dataset_.fingerprint();
  std::string all = to_text(dataset_.fingerprint());
  for (std::size_t i = 0; i < mixed_.size(); ++i) all += format(" {} {}", to_text(mixed_[i].fingerprint()), shares_[i].millionths);
  return data::checksum_of(all);
}

std::optional<data::EvalBatches> Corpus::held_out(std::int64_t rows) const {
  if (!held_out_) return std::nullopt;
  return data::EvalBatches(held_out_, rows, eval_tokens_);
}

void require_kind(const Corpus& corpus, const RunConfig& c) {
  const std::string named = format("{} '{}'", corpus.dataset().key(), printable(corpus.dataset().folder()));
  if (c.dpo && corpus.pairs() == 0)
    throw ConfigError(format("dpo.beta = {} learns from pairs of answers, and {} has none; make such a folder with octet tokenize --pairs",
                             c.dpo.beta, named));
  if (!c.dpo && corpus.pairs() > 0)
    throw ConfigError(format("{} has pairs of answers; set dpo.beta, such as 0.1, to learn from them, or name another text", named));
}

}  // namespace octet::train
