#pragma once

#include "octet/cli/command.hpp"
#include "octet/tokenizer/tokenizer.hpp"
#include "octet/train/step/engine.hpp"

namespace octet::cli {

/// A model read from a folder, to be evaluated or sampled under any recipe: the options and the engine they make.
struct TrainedModel {
  std::string folder;  // a Hugging Face folder, or a run's folder, whose `weights` are then meant
  scaling::PrecisionConfig precision;
  bool quantize_residual = false;
  std::string device = "auto", head = "bf16";
  std::int64_t threads = 0;

  void add_to(Command&);
  /// The folder with config.json. Throws ConfigError when neither `folder` nor its `weights` has one.
  std::string weights() const;
  /// The tokenizer `wanted`, or if it is empty, that of the model's folder. Throws ConfigError when the folder has none, unless the model
  /// has the vocabulary of the byte tokenizer.
  std::unique_ptr<const tokenizer::Tokenizer> open_tokenizer(const std::string& wanted) const;
  /// The longest sequence that the model takes.
  std::int64_t max_sequence() const;
  /// Without gradients, for sequences up to `sequence`.
  std::unique_ptr<train::Engine> load(std::int64_t sequence) const;
};

}  // namespace octet::cli
