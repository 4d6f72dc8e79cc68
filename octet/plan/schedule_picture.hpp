#pragma once

#include <string>

#include "octet/parallel/pipeline/simulation.hpp"

namespace octet::plan {

/// An SVG file: a row per stage, a box per computing action at its time, with the micro-batch's number. Above it the bubble and the
/// micro-batches in flight. Transfers are not drawn, since they take no time.
std::string schedule_svg(parallel::Schedule, const parallel::PipelineShape&);

}  // namespace octet::plan
