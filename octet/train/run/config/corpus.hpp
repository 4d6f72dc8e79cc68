#pragma once

#include <deque>
#include <optional>

#include "octet/data/dataset.hpp"
#include "octet/data/eval_batches.hpp"
#include "octet/data/mixture.hpp"
#include "octet/train/run/config/run_config.hpp"

namespace octet::train {

/// The open texts of a run: training windows and held-out batches.
class Corpus {
 public:
  /// Throws ConfigError or DataError when the data does not fit the configuration or the model's vocabulary.
  Corpus(const data::DataConfig&, const LoopConfig&, std::int64_t vocabulary);
  Corpus(const Corpus&) = delete;
  Corpus& operator=(const Corpus&) = delete;

  /// Of data.path.
  const data::Dataset& dataset() const { return dataset_; }
  const data::Mixture& training() const { return training_; }
  /// Checksum of all texts that are trained on, and of their shares. A run stores it, and a resumed run compares it.
  data::Checksum fingerprint() const;
  /// The held-out text in batches of `rows` sequences; none when nothing is held out.
  std::optional<data::EvalBatches> held_out(std::int64_t rows) const;

 private:
  data::Dataset dataset_;
  std::vector<data::Share> shares_;
  std::deque<data::Dataset> mixed_;  // one per share
  std::optional<data::Dataset> eval_dataset_;
  data::Mixture training_;
  std::optional<data::Windows> held_out_;
  std::int64_t eval_tokens_;
};

}  // namespace octet::train
