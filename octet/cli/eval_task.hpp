#pragma once

#include <string>

#include "octet/cli/command.hpp"
#include "octet/comm/communicator.hpp"
#include "octet/trained/trained_model.hpp"

namespace octet::cli {

/// `octet eval --task`: multiple choice by log-likelihood, counted as lm-evaluation-harness counts.
struct EvalTask {
  std::string file, tokenizer, answers;
  std::int64_t limit = 0;

  void add_to(Command&);
  explicit operator bool() const { return !file.empty(); }
  /// Each rank has a share of the questions; the first one prints.
  ExitCode run(const trained::TrainedModel&, comm::Communicator& ranks) const;
};

}  // namespace octet::cli
