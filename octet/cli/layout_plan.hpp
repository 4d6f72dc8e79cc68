#pragma once

#include "octet/cli/network_options.hpp"
#include "octet/plan/failures.hpp"
#include "octet/train/run/config/run_config.hpp"

namespace octet::cli {

/// The options of octet plan that ask for a layout on several GPUs, a schedule's picture, or the guide.
struct LayoutOptions {
  std::int64_t gpus = 0, per_node = 0;
  std::string memory, machine = "h100", model, layout, write;
  std::vector<std::string> levels;
  NetworkOptions network;
  double expert_load = 1;
  double price = 0;
  plan::Failures failures;
  bool runnable = false;
  std::string schedule_file, schedule = "1f1b";
  std::int64_t stages = 4, chunks = 1, micro_batches = 8;
  bool matrix = false;
  std::string matrix_file;

  void add_to(Command&);
  /// Whether one of them was asked for; otherwise octet plan estimates the run on this machine.
  bool asked() const { return gpus > 0 || matrix || !schedule_file.empty(); }
  /// Throws ConfigError where options do not belong together.
  void require_together(const std::vector<std::string>& given) const;
  /// `given`: options and keys that the user has set; the answer names the assumptions about others.
  ExitCode run(const train::RunConfig&, const std::vector<std::string>& given) const;
};

}  // namespace octet::cli
