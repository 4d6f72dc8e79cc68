#pragma once

#include "octet/json/value.hpp"
#include "octet/watch/query.hpp"
#include "octet/watch/runs.hpp"

// The answers of the JSON API, as docs/watch.md lists them. Each throws ConfigError for a parameter that is refused.

namespace octet::watch {

/// A finite number with 7 significant digits, or null.
json::Value number_json(double x);
/// The same as a further entry.
void append_number(json::Array&, double x);

/// All runs: number, name, recipe, condition, the last step.
json::Value runs_answer(Runs&);
/// The metrics that curves may have: name, title and unit.
json::Value metrics_answer();
/// One run: facts, condition, the last events, progress of reading, the limits of its machine.
json::Value summary_answer(const WatchedRun&);
/// All curves of a run: parameters `from`, `to` (steps) and `points`. Each curve is five lists: first and last step, mean, low and high of
/// each bucket.
json::Value series_answer(const WatchedRun&, const Target&);
/// A measure of all tensors over steps: parameters `measure` (headroom, saturated, flushed, sqnr, nonfinite, spread, lossy, amax, scale),
/// `columns`.
json::Value heat_answer(const WatchedRun&, const Target&);
/// All measures of one tensor over steps: parameters `tensor`, `points`.
json::Value tensor_answer(const WatchedRun&, const Target&);
/// The last incidents, newest first; with parameter `incident` one of them with the 20 steps before and after it, and the tensors that
/// moved first.
json::Value incidents_answer(const WatchedRun&, const Target&);
/// The last 100 samples of text, newest first.
json::Value samples_answer(const WatchedRun&);
/// Several runs, the first as the reference: final losses, differences of their losses with an interval, differing keys and plan rows.
json::Value compare_answer(Runs&, const Target&);

}  // namespace octet::watch
