#pragma once

#include "octet/trained/model_source.hpp"
#include "octet/tokenizer/tokenizer.hpp"
#include "octet/train/step/engine.hpp"

namespace octet::trained {

/// The linear layers, and those of them that run otherwise than the recipe says.
struct RecipeLayers {
  std::size_t count = 0;
  std::vector<scaling::PlanRow> others;
};
RecipeLayers layers_of(const scaling::Precision&);

/// A trained model, to be evaluated or sampled under any recipe: the wishes for it, and the engine that they make. Messages name them as
/// options of subcommands.
struct TrainedModel {
  std::string folder;      // as ModelSource::find() takes it
  std::int64_t step = -1;  // of a run's checkpoint; -1: the newest
  scaling::PrecisionConfig precision;
  bool quantize_residual = false;
  std::string device = "auto", head = "bf16";
  std::int64_t threads = 0;

  /// Found at the first call, and then kept. Throws as ModelSource::find().
  const ModelSource& source() const;
  /// The tokenizer `wanted`, or if it is empty, that of the model's folder. Throws ConfigError when the folder has none, unless the model
  /// has the vocabulary of the byte tokenizer.
  std::unique_ptr<const tokenizer::Tokenizer> open_tokenizer(const std::string& wanted) const;
  /// The ids that end a text: those of the model's files, or the tokenizer's separator.
  std::vector<std::int64_t> end_ids(const tokenizer::Tokenizer&) const;
  /// The longest sequence that the model takes.
  std::int64_t max_sequence() const { return source().shape.max_sequence; }
  /// Without gradients, for sequences up to `sequence`. `ranks`: that evaluate together, each with an engine; null: this one alone. Throws
  /// ConfigError when 8-bit formats are asked for and no layer runs in the recipe: results would be those of BF16 under its name.
  std::unique_ptr<train::Engine> load(std::int64_t sequence, comm::Communicator* ranks = nullptr) const;

 private:
  mutable std::optional<ModelSource> source_;
};

}  // namespace octet::trained
