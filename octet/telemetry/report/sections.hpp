#pragma once

#include "octet/telemetry/report/markup.hpp"
#include "octet/telemetry/report/study.hpp"

// The report's sections, in their order. Each writes nothing where its runs have nothing to say.

namespace octet::report {

/// Title, what was found, what was run.
void write_header(Markup&, const Study&);
/// One row a group: losses, gap, cosine, speed, memory, skipped steps.
void write_summary(Markup&, const Study&);
/// Loss, its difference from the baseline, gradient norm over steps.
void write_curves(Markup&, const Study&);
/// Tokens a second; peak memory by category, drawn and as numbers.
void write_resources(Markup&, const Study&);
/// For each group with quantizers: layer x step maps of headroom, saturation and flushing, and scale factors over time.
void write_health(Markup&, const Study&);
void write_incidents(Markup&, const Study&);
/// "layer -> precision -> why" of each group.
void write_plan(Markup&, const Study&);
/// Machine, model and the resolved configuration.
void write_configuration(Markup&, const Study&);

}  // namespace octet::report
