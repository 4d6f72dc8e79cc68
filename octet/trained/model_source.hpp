#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "octet/models/companions.hpp"
#include "octet/train/step/engine.hpp"

namespace octet::trained {

/// Where a trained model's weights are, and everything else that is known of it: a Hugging Face folder, or a checkpoint of a run.
struct ModelSource {
  std::string folder;             // of the weights, as messages show it
  bool checkpoint = false;        // the folder is a checkpoint
  std::string companions_folder;  // with the tokenizer's files and generation_config.json, where there are any
  models::Companions companions;
  models::ModelShape shape;
  std::optional<scaling::PrecisionConfig> precision = {};  // of a checkpoint: that of the last step of its run
  models::TrainedAdapters adapters = {};                   // merged into the weights of the folder as these are loaded
  std::vector<std::string> origins;  // folders that it is made of: its own, and that of the model from which its run began

  /// `folder`: a Hugging Face folder; a PEFT folder, whose adapters are merged into the model that it names; a checkpoint; or a run's
  /// folder, of which the checkpoint of `step` (-1: the newest) is meant, or where there is none its `weights`. Every byte of a checkpoint
  /// is verified. Throws ConfigError when it is none of these or there is no such step, DataError, IoError.
  static ModelSource find(const std::string& folder, std::int64_t step);
  /// Fills an engine of that shape. Throws DataError.
  void load(train::Engine&) const;
};

}  // namespace octet::trained
