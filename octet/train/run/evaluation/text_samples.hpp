#pragma once

#include "octet/data/dataset.hpp"
#include "octet/train/run/record/progress.hpp"
#include "octet/train/run/record/recorder.hpp"
#include "octet/train/run/config/run_config.hpp"
#include "octet/train/run/ranks/run_ranks.hpp"

namespace octet::train {

/// The texts that a run samples from its model while it trains (train.sample_every).
class TextSamples {
 public:
  /// Reads the tokenizer of the data, unless there are no samples. Throws ConfigError, DataError.
  TextSamples(const RunConfig&, const data::Dataset&);

  /// Records a sample if the step has one. It is a function of the weights, the prompt, the seed and the step, and changes no other state.
  /// All ranks call it; rank 0 draws.
  void take_if_due(Engine&, RunRanks&, Recorder&, Progress&);

 private:
  bool due(const Progress&) const;

  LoopConfig config_;
  std::uint64_t seed_;
  std::int64_t longest_;
  std::unique_ptr<const tokenizer::Tokenizer> tokenizer_;  // null: no samples
  std::vector<std::int32_t> prompt_;
  std::vector<std::int64_t> ends_;
};

}  // namespace octet::train
