#pragma once

#include "octet/telemetry/report/heat_map.hpp"
#include "octet/telemetry/report/line_chart.hpp"
#include "octet/telemetry/report/markup.hpp"
#include "octet/telemetry/report/study.hpp"

// The report's sections, in their order. A section without data writes nothing.

namespace octet::telemetry::report {

/// Title, findings, facts of the runs.
void write_header(Markup&, const Study&);
/// One row per group: losses, gap, cosine, speed, memory, skipped steps.
void write_summary(Markup&, const Study&);
/// Loss, its difference from the baseline, gradient norm over steps.
void write_curves(Markup&, const Study&);
/// Tokens per second; peak memory by category, as chart and numbers; GPUs of runs that know them.
void write_resources(Markup&, const Study&);
/// Of runs on several ranks: what each sent and computed as planned and as counted, time in collectives, the slowest rank.
void write_ranks(Markup&, const Study&);
/// The end of that section: factors mu, overflow and underflow of gradients that travel with one scale per tensor.
void write_shared_scales(Markup&, const Study&);
/// For each group with quantizers: layer x step maps of headroom, SQNR below that of rounding, saturation and flushing, and scale factors
/// over time.
void write_health(Markup&, const Study&);
/// Of runs with experts: a row of the last loads per group, entropy of loads by layer and step, and the last loads by layer and expert.
void write_experts(Markup&, const Study&);
/// Incidents and alerts link to their pages of Study::watch_address.
void write_incidents(Markup&, const Study&);
/// One row per alert: step, severity, rule, tensor, observation, remedy.
void write_alerts(Markup&, const Study&);
/// Actions of recovery, and why.
void write_recoveries(Markup&, const Study&);
/// Texts that the models continued while they trained, of the first seed of each group.
void write_samples(Markup&, const Study&);
/// Layer -> precision -> reason of each group.
void write_plan(Markup&, const Study&);
/// Machine, model and the resolved configuration.
void write_configuration(Markup&, const Study&);

/// The charts of these sections that are also in a picture: loss, with the steps of alerts marked where there is one run; gradient norm;
/// and headroom of the first run with quantizers, in few columns.
LineChart loss_chart(const Study&);
/// In percent of the baseline's loss, with the twins' band; nothing without a comparison.
std::optional<LineChart> difference_chart(const Study&);
LineChart gradient_chart(const Study&);
std::optional<HeatMap> headroom_map(const Study&);

}  // namespace octet::telemetry::report
