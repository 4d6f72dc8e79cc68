#pragma once

#include "octet/cli/command.hpp"
#include "octet/trained/eval_set.hpp"
#include "octet/trained/trained_model.hpp"

namespace octet::cli {

/// A trained model by the options of a subcommand.
struct ModelOptions : trained::TrainedModel {
  void add_to(Command&);
  /// The positional folder and --step alone.
  void add_source_to(Command&);
};

/// The text of an evaluation by the options of a subcommand.
struct TextOptions : trained::EvalSet {
  void add_to(Command&);
};

}  // namespace octet::cli
