#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "octet/base/regular_file.hpp"
#include "octet/base/text.hpp"
#include "octet/telemetry/memory_use.hpp"
#include "octet/telemetry/ranks_facts.hpp"

namespace octet::telemetry {

enum class RunState { running, finished, stopped, diverged };

using octet::to_text;
std::string to_text(RunState);

struct ModelFacts {
  std::string family{}, size{};
  std::int64_t parameters = 0, layers = 0, width = 0, heads = 0, kv_heads = 0, hidden = 0, vocabulary = 0, context = 0;
};

struct MachineFacts {
  std::string cpu{};
  int threads = 0;
  std::string gemm_compute{};   // "f32", "bf16": the type in which decoded codes are multiplied
  double gemm_limit_flops = 0;  // FLOP/s, measured at start
};

/// The token folder of data.path: that one itself, or the one that was made of its text.
struct DataFacts {
  std::string folder{};
  std::int64_t tokens = 0, documents = 0;
};

/// One row of the plan: layer -> precision -> reason.
struct PlanEntry {
  std::string path{}, precision{}, why{};
  std::vector<std::int64_t> shape{};  // [out, in] of a linear site; otherwise empty
};

/// The position and the formats of a quantizer.
struct QuantizerFacts {
  std::string path{};
  std::string operand{};  // "x" activations, "w" weights, "dy" gradients
  std::string format{};   // "e4m3", "e5m2"
  std::string block{};    // rows x columns that share a scale: "tensor", "matrix" of a stack of experts, "1xall", "1x128", ...
};

/// Twins of a baseline that one comparison trains for each seed, at most.
inline constexpr int most_twins = 100;

/// The facts of a run that are known before its first step, and its state: the file `run.json`.
struct RunFacts {
  std::string name{}, recipe{};
  std::int64_t seed = 0;
  std::string arm{};  // its name in a comparison; "" outside one
  int twin = 0;       // number of this twin of the baseline: its first weights differ in their last bit; 0: no twin
  ModelFacts model;
  MachineFacts machine;
  DataFacts data;
  std::vector<PlanEntry> plan{};
  std::vector<QuantizerFacts> quantizers{};  // in the order of every array of ScalesEvent and HealthEvent
  MemoryUse memory;
  RanksFacts ranks;
  double flops_per_step = 0;
  std::int64_t tokens_per_step = 0;
  std::int64_t steps = 0;        // planned; 0 if time or tokens limit the run
  double eight_bit_share = NAN;  // of the FLOP of matrix products, those with an 8-bit operand; NaN where none was to have one
  std::string baseline{};        // arm that this run is compared with, or ""
  double gradient_cosine = 1;    // of the first step's gradient with the baseline's; NaN where there is none
  std::string started{};         // UTC, "2026-01-31T12:00:00Z"
  RunState state = RunState::running;
  std::string config_json = "{}";  // the resolved configuration, a JSON object
};

/// Replaces `path` atomically. Throws IoError; ContractError unless config_json is a JSON object.
void write_run_facts(const std::string& path, const RunFacts&);
/// Throws IoError, DataError (file, field, expected value, actual value).
/// No link is followed.
RunFacts read_run_facts(const std::string& path, Link = Link::refuse);

}  // namespace octet::telemetry
