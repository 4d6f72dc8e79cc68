#include "octet/telemetry/report/report.hpp"

#include "octet/base/check.hpp"
#include "octet/base/file.hpp"
#include "octet/telemetry/report/sections.hpp"
#include "octet/telemetry/report/stylesheet.hpp"
#include "octet/telemetry/report/svg_file.hpp"

namespace octet::telemetry {
namespace {

void want_complete_events(const RunRecord& run) {
  const std::size_t tensors = run.facts.ranks.shared_scales.size();
  for (const auto& e : run.shared_scales)
    check(e.mu.size() == tensors && e.overflow.size() == tensors && e.underflow.size() == tensors,
          "report: shared scales of step {} must have {} entries", e.step, tensors);
  const std::size_t n = run.facts.quantizers.size();
  for (const auto& e : run.scales)
    check(e.amax.size() == n && e.scale_min.size() == n && e.scale_max.size() == n, "report: scales of step {} must have {} entries",
          e.step, n);
  for (const auto& e : run.health)
    check(
        e.headroom_bits.size() == n && e.saturated.size() == n && e.flushed.size() == n && e.sqnr_db.size() == n && e.nonfinite.size() == n,
        "report: health of step {} must have {} entries", e.step, n);
}

}  // namespace

std::string report_html(std::span<const RunRecord> runs, const Comparison* comparison, const std::string& watch_address) {
  using namespace report;
  for (const RunRecord& run : runs) want_complete_events(run);
  Study study = study_of(runs, comparison);
  study.watch_address = watch_address;
  Markup m;
  m.verbatim("<!DOCTYPE html>\n");
  {
    const auto html = m.in("html", {{"lang", "en"}});
    {
      const auto head = m.in("head");
      m.leaf("meta", {{"charset", "utf-8"}});
      m.leaf("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}});
      m.leaf("meta", {{"name", "color-scheme"}, {"content", "light dark"}});
      // A second defence besides escaping: a browser that honours this runs no script and fetches nothing.
      m.leaf("meta", {{"http-equiv", "Content-Security-Policy"}, {"content", "default-src 'none'; style-src 'unsafe-inline'"}});
      m.element("title", "Octet report" + (study.groups.empty() ? "" : ": " + study.groups[0].first().facts.name));
      const auto style = m.in("style");
      m.verbatim(stylesheet);
    }
    const auto body = m.in("body");
    const auto main = m.in("main");
    write_header(m, study);
    write_summary(m, study);
    write_curves(m, study);
    write_resources(m, study);
    write_ranks(m, study);
    write_health(m, study);
    write_experts(m, study);
    write_incidents(m, study);
    write_alerts(m, study);
    write_recoveries(m, study);
    write_samples(m, study);
    write_plan(m, study);
    write_configuration(m, study);
  }
  return m.text() + "\n";
}

void write_report(const std::string& path, std::span<const RunRecord> runs, const Comparison* comparison,
                  const std::string& watch_address) {
  write_own_file(path, report_html(runs, comparison, watch_address));
}

std::string report_svg(std::span<const RunRecord> runs, const Comparison* comparison) {
  using namespace report;
  for (const RunRecord& run : runs) want_complete_events(run);
  const Study study = study_of(runs, comparison);
  if (auto difference = difference_chart(study)) return svg_file({loss_chart(study), std::move(*difference)});
  std::vector<Chart> charts{loss_chart(study), gradient_chart(study)};
  if (auto map = headroom_map(study)) charts.push_back(std::move(*map));
  return svg_file(charts);
}

}  // namespace octet::telemetry
