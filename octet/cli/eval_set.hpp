#pragma once

#include <string>
#include <vector>

#include "octet/cli/command.hpp"
#include "octet/data/dataset.hpp"
#include "octet/data/eval_batches.hpp"

namespace octet::cli {

/// The text of `octet eval`: its options, and the batches that they select. If the model is that of a run, options that are not given are
/// those of the run's own evaluations, so that its figure is repeated.
struct EvalSet {
  std::string data;
  std::int64_t sequence = 256, batch = 4, tokens = 0;
  double fraction = 0.01;
  bool all = false, document_mask = false;

  void add_to(Command&);
  /// Takes options that are not in `given`, those on the command line, from the run in whose folder `model` is. Throws ConfigError when
  /// there is no run and --data is missing, when --all and --held-out are both given, and as reading a configuration does.
  void complete(const std::string& model, const std::vector<std::string>& given);
  /// Of the dataset, which must outlive the batches. Throws ConfigError when the held-out part is too short.
  data::EvalBatches batches(const data::Dataset&) const;
  /// The option or key that names the dataset, for messages.
  const std::string& key() const { return key_; }

 private:
  std::string key_ = "--data";
};

/// The folder of the run that `model` names: a run's folder itself, its `weights`, or one of its checkpoints; "" if there is none.
std::string run_folder_of(const std::string& model);

}  // namespace octet::cli
