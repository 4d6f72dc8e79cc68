#pragma once

#include <string>

#include "octet/plan/search.hpp"

namespace octet::plan {

/// "1st", tokens per second and GPU, memory and time of the best layouts, as lines of text: the five best with their splits, the limit that
/// binds, the other precision, and why the second lost.
std::string answer_text(const Question&, const Answer&);

/// The limit that binds the best layout: memory, if a faster one does not fit; else the part of the step that takes longest.
std::string binding_limit(const Question&, const Answer&);

/// Why `loser` is slower than `winner`: the parts of a step that differ most, or the rule of preference where times are equal.
std::string reason_lost(const Candidate& winner, const Candidate& loser);

}  // namespace octet::plan
