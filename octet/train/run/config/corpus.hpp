#pragma once

#include <deque>
#include <optional>

#include "octet/data/dataset.hpp"
#include "octet/data/eval_batches.hpp"
#include "octet/data/mixture.hpp"
#include "octet/train/run/config/run_config.hpp"

namespace octet::train {

/// The open texts of a run: training samples and held-out batches. Of datasets with pairs of answers both are pairs, whose numbers are
/// those in data.path, then in texts of data.mix, then in data.eval_path.
class Corpus {
 public:
  /// Throws ConfigError or DataError when the data does not fit the configuration or the model's vocabulary.
  Corpus(const data::DataConfig&, const LoopConfig&, std::int64_t vocabulary);
  Corpus(const Corpus&) = delete;
  Corpus& operator=(const Corpus&) = delete;

  /// Of data.path.
  const data::Dataset& dataset() const { return dataset_; }
  const data::Mixture& training() const { return training_; }
  /// Pairs of all datasets; 0 of texts.
  std::int64_t pairs() const;
  /// All pairs that training or evaluation shows, in batches of `rows` sequences.
  std::vector<data::EvalBatches> all_pairs(std::int64_t rows) const;
  /// Checksum of what has pairs(): all datasets in their order.
  data::Checksum fingerprint_of_pairs() const;
  /// Checksum of all texts that are trained on, and of their shares. A run stores it, and a resumed run compares it.
  data::Checksum fingerprint() const;
  /// The held-out text in batches of `rows` sequences; none when nothing is held out.
  std::optional<data::EvalBatches> held_out(std::int64_t rows) const;

 private:
  std::vector<const data::Dataset*> datasets() const;

  data::Dataset dataset_;
  std::vector<data::Share> shares_;
  std::deque<data::Dataset> mixed_;  // one per share
  std::optional<data::Dataset> eval_dataset_;
  data::Mixture training_;
  std::shared_ptr<const data::Samples> held_out_;  // null: nothing is held out
  std::int64_t eval_tokens_;
};

/// Throws ConfigError unless the data has pairs of answers exactly where the run learns preferences.
void require_kind(const Corpus&, const RunConfig&);

}  // namespace octet::train
