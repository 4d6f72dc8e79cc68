#pragma once

#include <string>
#include <vector>

#include "octet/data/dataset.hpp"
#include "octet/data/eval_batches.hpp"
#include "octet/train/step/evaluate.hpp"

namespace octet::trained {

/// The text of an evaluation: wishes, which messages name as options of `octet eval`, and the batches that they select. If the model is
/// that of a run, options that are not given are those of the run's own evaluations, so that its figure is repeated.
struct EvalSet {
  std::string data, chat_template;
  std::int64_t sequence = 256, batch = 4, tokens = 0;
  double fraction = 0.01;
  bool all = false, document_mask = false;

  /// Takes options that are not in `given`, those on the command line, from the run in whose folder `model` is. Throws ConfigError when
  /// there is no run and --data is missing, when --all and --held-out are both given, and as reading a configuration does.
  void complete(const std::string& model, const std::vector<std::string>& given);
  /// The token folder that `data` names, or that of its text files: made by the tokenizer and the template in the folder `model_files`
  /// where it is missing.
  std::string token_folder(const std::string& model_files) const;
  /// Of the dataset, which must outlive the batches. Throws ConfigError when the held-out part is too short.
  data::EvalBatches batches(const data::Dataset&) const;
  /// The option or key that names the dataset, for messages.
  const std::string& key() const { return key_; }

 private:
  std::string key_ = "--data", output_ = "runs";
};

/// Throws DataError, which names the model, where the loss says nothing about it: it or values before a norm are not finite.
void require_finite(train::Engine&, const data::EvalBatches&, const train::Evaluation&, const std::string& model);

/// The folder of the run that `model` names: a run's folder itself, its `weights`, or one of its checkpoints; "" if there is none.
std::string run_folder_of(const std::string& model);

}  // namespace octet::trained
