#pragma once

#include <string>

#include "octet/plan/search.hpp"

namespace octet::plan {

/// Lines of text: the best layouts with tokens per second and GPU, time and memory by parts; the limit that binds the first, why the second
/// lost, the other precision, and the best layout that this version trains.
std::string answer_text(const Question&, const Answer&);

/// The same of one layout that was asked for: whether it fits, and the longest part of its step.
std::string given_text(const Question&, const Candidate&);

/// Why there is no best layout, and what to change; "" where there is one.
std::string nothing_fits(const Question&, const Answer&);

}  // namespace octet::plan
