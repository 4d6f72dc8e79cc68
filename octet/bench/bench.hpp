#pragma once

#include "octet/bench/steps.hpp"

namespace octet::bench {

/// The groups that can be measured, in this order.
inline constexpr const char* groups[] = {"gemm", "quantize", "attention", "norm", "activation", "experts", "optimizer", "step"};

/// Options of a measurement.
struct BenchOptions {
  train::RunConfig config;            // model, device, tokens per micro-batch and per step, states of the optimizer
  std::vector<std::string> groups;    // of the names above
  std::vector<std::string> recipes;   // empty: bf16 and the recipes of `octet compare`
  Effort effort;                      // working_set_bytes 0: beyond_cache_bytes()
  ExpertLoads loads = ExpertLoads();  // of experts, in steps
};

/// All results of one run, on one device of one machine.
struct Result {
  std::string device, libraries, model;
  std::int64_t tokens = 0, sequence = 0;
  Effort effort;
  double copy_bytes_per_second = 0, fp8_flops_per_second = 0, bf16_flops_per_second = 0, f32_flops_per_second = 0;  // 0: not known here
  std::vector<Row> rows;
  std::vector<StepResult> steps;
  bool stopped = false;  // by Effort::stopped: rows and steps are those that were complete
};

/// Measures. Throws ConfigError on names that do not exist, DeviceError if the device lacks memory or a library.
Result run(const BenchOptions&);

}  // namespace octet::bench
