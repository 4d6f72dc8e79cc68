#pragma once

#include <optional>

#include "octet/data/dataset.hpp"
#include "octet/data/eval_batches.hpp"
#include "octet/train/run/config/run_config.hpp"

namespace octet::train {

/// The open text of a run: training windows and held-out batches.
class Corpus {
 public:
  /// Throws ConfigError or DataError when the data does not fit the configuration or the model's vocabulary.
  Corpus(const data::DataConfig&, const LoopConfig&, std::int64_t vocabulary);
  Corpus(const Corpus&) = delete;
  Corpus& operator=(const Corpus&) = delete;

  const data::Dataset& dataset() const { return dataset_; }
  const data::Windows& training() const { return training_; }
  /// The held-out text in batches of `rows` sequences; none when nothing is held out.
  std::optional<data::EvalBatches> held_out(std::int64_t rows) const;

 private:
  data::Dataset dataset_;
  std::optional<data::Dataset> eval_dataset_;
  data::Windows training_;
  std::optional<data::Windows> held_out_;
  std::int64_t eval_tokens_;
};

}  // namespace octet::train
