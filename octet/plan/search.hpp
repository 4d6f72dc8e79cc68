#pragma once

#include <optional>
#include <vector>

#include "octet/plan/memory.hpp"
#include "octet/plan/time.hpp"
#include "octet/train/layout/constraints.hpp"

namespace octet::plan {

/// A question to the planner.
struct Question {
  PlannedModel model;
  Job job;
  bool eight_bit = true;            // the precision asked for; the other one is found as an alternative,
  bool has_other_precision = true;  // unless the machine does not have it
  std::vector<optim::Level> levels = {optim::Level::O0};
  bool only_runnable = false;  // layouts that this version trains
  train::Subject run = {};     // its options and recipes
  ProgramOf program;
};

/// A valid layout with its prediction.
struct Candidate {
  Layout layout;
  StepTime time;
  LayoutMemory memory;  // of candidates in the answer
};

struct Answer {
  std::int64_t valid = 0;                    // layouts that keep all rules
  std::int64_t too_large = 0;                // of those that were checked: not in memory
  std::vector<Candidate> best;               // the fastest of each mesh, at most five, in this order
  std::optional<Candidate> nearest_miss;     // of the faster ones, the one that needs the least memory too much
  std::optional<Candidate> other_precision;  // the fastest that fits with the other precision
  std::optional<Candidate> runnable;         // the fastest that fits and that this version trains
  std::string rule;                          // where nothing is valid: a rule that the simplest layout breaks
};

/// All valid layouts, by predicted time. Within 2%, which is less than the error of the prediction, layouts with fewer axes, a lower stage
/// of ZeRO, no recomputation and a lower level come first. Memory is asked of `source` in that order, until five meshes fit into 96% of the
/// job's memory.
Answer search(const Question&, MemorySource& source);

/// The subject of all layouts: the run, with the model and the step of the question.
train::Subject subject_of(const Question&);
/// Why this version does not train a valid layout, such as "ranks.tensor = 2: ..."; "" where it does.
std::string not_trained(const Layout&, const Question&);

/// The share of a GPU's memory for tensors; the rest is of the driver and of libraries.
inline constexpr double usable_memory = 0.96;

}  // namespace octet::plan
