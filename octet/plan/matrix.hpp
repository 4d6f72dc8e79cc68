#pragma once

#include <string>

namespace octet::plan {

/// The text of docs/parallelism-guide.md: assumptions, constants, and for each model size, number of GPUs and kind of cluster the layout
/// that the planner chooses, with the reason in words. Memory is by formula, so that the text depends on the planner alone.
std::string guide_text();

}  // namespace octet::plan
